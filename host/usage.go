package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"regedge/replicate/metering/writer"
)

type usageCommand struct {
	operator
	CSV     bool      `env:"-" help:"Print CSV instead of a table."`
	Account int64     `env:"-" help:"Of this account only."`
	From    time.Time `env:"-" format:"2006-01-02" placeholder:"DATE" help:"From this day on, YYYY-MM-DD, UTC."`
	To      time.Time `env:"-" format:"2006-01-02" placeholder:"DATE" help:"Before this day, YYYY-MM-DD, UTC."`
}

// Validate refuses contradicting flags.
func (c *usageCommand) Validate() error {
	if c.CSV && c.JSON {
		return errors.New("--csv and --json exclude each other")
	}
	return nil
}

// Run lists usage by hour.
func (c *usageCommand) Run(ctx context.Context, m *Main) error {
	var csvErr error
	err := show(m, &c.operator, func(w *writer.Client) ([]writer.UsageRow, error) {
		return w.Usage(ctx, writer.UsageQuery{Account: c.Account, From: c.From, To: c.To})
	}, func(table *tabwriter.Writer, rows []writer.UsageRow) {
		if c.CSV {
			csvErr = usageCSV(m.Stdout, rows)
			return
		}
		row(table, "HOUR", "ACCOUNT", "KEY", "ENDPOINT", "OUTCOME", "COUNT")
		for _, u := range rows {
			row(table, hour(u.Hour), u.Account, u.Key, u.Endpoint, u.Outcome, u.Count)
		}
	})
	return errors.Join(err, csvErr)
}

func hour(t time.Time) string { return t.UTC().Format("2006-01-02T15:04Z") }

func usageCSV(w io.Writer, rows []writer.UsageRow) error {
	out := csv.NewWriter(w)
	out.Write([]string{"hour", "account", "key", "endpoint", "outcome", "count"})
	for _, u := range rows {
		out.Write([]string{
			hour(u.Hour), fmt.Sprint(u.Account), fmt.Sprint(u.Key), u.Endpoint, u.Outcome, strconv.FormatInt(u.Count, 10),
		})
	}
	out.Flush()
	return out.Error()
}
