// Vectors makes the calls that it reads from standard input, one JSON object a line, and writes
// what the client returned. The service's tests run it on their vectors
// (internal/conformance/clients_test.go).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	regedge "regedge/clients/go"
)

type request struct {
	Base, Key, Method, Argument string
	Header                      map[string]string
	Limit                       int
}

// outcome is the result of a call in a form that all libraries share.
type outcome struct {
	Data             any       `json:"data,omitempty"`
	RequestID        string    `json:"request_id"`
	CreditsRemaining *int64    `json:"credits_remaining"`
	Sandbox          bool      `json:"sandbox"`
	RateLimit        rateLimit `json:"rate_limit"`
	Release          string    `json:"release"`
	Replayed         bool      `json:"replayed"`
	Suggestions      []string  `json:"suggestions"`
	Error            *problem  `json:"error,omitempty"`
}

type rateLimit struct {
	Limit     *int `json:"limit"`
	Remaining *int `json:"remaining"`
	Reset     *int `json:"reset"`
}

type problem struct {
	Status     int    `json:"status"`
	Code       string `json:"code"`
	Type       string `json:"type"`
	Title      string `json:"title"`
	Detail     string `json:"detail"`
	RetryAfter int    `json:"retry_after"`
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r request
		if in.Decode(&r) != nil {
			return
		}
		if err := out.Encode(perform(r)); err != nil {
			log.Fatal(err)
		}
	}
}

func perform(r request) outcome {
	header := http.Header{}
	for name, value := range r.Header {
		header.Set(name, value)
	}
	client, err := regedge.New(regedge.Config{BaseURL: r.Base, APIKey: r.Key, Header: header, MaxRetries: -1})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	switch r.Method {
	case "company":
		return outcomeOf(client.Company(ctx, r.Argument))
	case "director":
		return outcomeOf(client.Director(ctx, r.Argument))
	case "llp":
		return outcomeOf(client.LLP(ctx, r.Argument))
	case "search":
		return outcomeOf(client.Search(ctx, r.Argument, r.Limit))
	case "find_llp":
		return outcomeOf(client.FindLLP(ctx, r.Argument))
	}
	log.Fatalf("no method is called %q", r.Method)
	return outcome{}
}

func outcomeOf[T any](result *regedge.Result[T], err error) outcome {
	var failed *regedge.Error
	if errors.As(err, &failed) {
		return outcome{
			RequestID: failed.RequestID, RateLimit: rateOf(failed.RateLimit),
			Error: &problem{
				Status: failed.Status, Code: string(failed.Code), Type: failed.Type, Title: failed.Title,
				Detail: failed.Detail, RetryAfter: int(failed.RetryAfter / time.Second),
			},
		}
	}
	if err != nil {
		return outcome{Error: &problem{Detail: fmt.Sprint(err)}}
	}
	return outcome{
		Data: result.Data, RequestID: result.RequestID, CreditsRemaining: result.CreditsRemaining, Sandbox: result.Sandbox,
		RateLimit: rateOf(result.RateLimit), Release: result.Release, Replayed: result.Replayed, Suggestions: result.Suggestions,
	}
}

func rateOf(limit regedge.RateLimit) rateLimit {
	rate := rateLimit{Limit: limit.Limit, Remaining: limit.Remaining}
	if limit.Reset != nil {
		seconds := int(*limit.Reset / time.Second)
		rate.Reset = &seconds
	}
	return rate
}
