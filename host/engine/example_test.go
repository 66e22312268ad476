package engine_test

import (
	"context"
	"fmt"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/host/engine"
)

// companies is a database with one answer.
type companies struct{}

func (companies) Query(_ context.Context, _ string, _ []handler.Value, dst *handler.Result) error {
	matches := `[{"value":"U72900KA2015PTC990001","label":"MADE-UP EXAMPLE PRIVATE LIMITED","type":"company"}]`
	dst.Columns = 2
	dst.Values = append(dst.Values[:0],
		handler.Value{Kind: handler.Text, Text: "r1"}, handler.Value{Kind: handler.Text, Text: matches})
	return nil
}

// Example answers one search with the component that is embedded in the program.
func Example() {
	ctx := context.Background()
	component, err := engine.NewComponent(ctx, engine.Parts{
		Access: companies{}, Registry: companies{}, // in a service, a sqlite.Store each
		Meter: free{}, Clock: engine.Clock{}, Random: engine.Random{}, DocsURL: "https://docs.example",
	}, engine.Limits{})
	if err != nil {
		panic(err)
	}
	defer component.Close(ctx)
	request := handler.Request{
		Method: "GET", Target: "/v1/search/companies?name=made+up",
		Headers:    []handler.Header{{Name: "Authorization", Value: "Bearer " + ident.SandboxKey}},
		ClientAddr: func() string { return "192.0.2.1" },
	}
	var response handler.Response
	if err := component.Answer(ctx, &request, &response); err != nil {
		panic(err)
	}
	fmt.Println(response.Status)
	// Output: 200
}
