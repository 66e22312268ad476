package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"

	"regedge/host/hint"
	"regedge/replicate/metering/writer"
)

// operator are the flags of the commands that call the writer's API.
type operator struct {
	Writer string `default:"http://127.0.0.1:8081" placeholder:"URL" help:"Address of the writer's API (${default})."`
	tokenFlags
	JSON bool `help:"Print JSON instead of a table."`
}

// client connects to the writer.
func (o *operator) client() (*writer.Client, error) {
	token, err := o.read()
	if err != nil {
		return nil, err
	}
	if err := checkWriterURL(o.Writer); err != nil {
		return nil, err
	}
	return writer.NewClient(o.Writer, token, nil), nil
}

// checkWriterURL refuses what can't be the address of a writer.
func checkWriterURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return hint.With(fmt.Errorf("%q is not the address of a writer", address),
			"--writer or REGEDGE_WRITER is a URL, such as http://127.0.0.1:8081")
	}
	return nil
}

// explain adds a hint to the errors that an operator meets most.
func (o *operator) explain(err error) error {
	var refused *os.SyscallError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, writer.ErrUnauthorized):
		return hint.With(err, "is REGEDGE_TOKEN the operator's token of the writer at %s?", o.Writer)
	case errors.Is(err, writer.ErrStranger):
		return hint.With(err, "is %s the address of the writer's API? Set --writer or REGEDGE_WRITER", o.Writer)
	case errors.Is(err, writer.ErrUnknownPlan):
		return hint.With(err, "regedge plan list shows the plans")
	case errors.As(err, &refused):
		return hint.With(err, "is a writer (or regedge dev) running at %s? Set --writer or REGEDGE_WRITER", o.Writer)
	}
	return err
}

// show runs one call of the writer and prints its answer: as JSON, or as text makes it.
func show[T any](m *Main, o *operator, call func(*writer.Client) (T, error), text func(*tabwriter.Writer, T)) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	answer, err := call(client)
	if err != nil {
		return o.explain(err)
	}
	if o.JSON {
		encoder := json.NewEncoder(m.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(answer)
	}
	table := tabwriter.NewWriter(m.Stdout, 0, 0, 2, ' ', 0)
	text(table, answer)
	return table.Flush()
}

// row prints one row of a table.
func row(table *tabwriter.Writer, cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(table, "\t")
		}
		if text, ok := cell.(string); ok {
			cell = shown(text)
		}
		fmt.Fprint(table, cell)
	}
	fmt.Fprintln(table)
}

// shown is text as it can be shown on a terminal: with quotes where it holds what would
// steer it, or would break the table.
func shown(text string) string {
	if writer.Printable(text) {
		return text
	}
	return strconv.QuoteToGraphic(text)
}

// word picks one of two words by a flag.
func word(flag bool, yes, no string) string {
	if flag {
		return yes
	}
	return no
}
