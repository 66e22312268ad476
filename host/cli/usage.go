package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"regedge/replicate/metering/writer"
)

type usageCommand struct {
	operator
	CSV     bool      `env:"-" help:"Print CSV instead of a table."`
	Account int64     `env:"-" placeholder:"ID" help:"Of this account only."`
	From    time.Time `env:"-" placeholder:"DATE" help:"From this day on, YYYY-MM-DD, UTC."`
	To      time.Time `env:"-" placeholder:"DATE" help:"Before this day, YYYY-MM-DD, UTC."`
	By      []string  `env:"-" enum:"day,key,endpoint" placeholder:"day,key,endpoint" help:"Sum an account's usage by these, in place of its hours: of the last 30 days, or of up to 400 from --from to --to."`
}

// Validate refuses contradicting flags.
func (c *usageCommand) Validate() error {
	if c.CSV && c.JSON {
		return errors.New("--csv and --json exclude each other")
	}
	if len(c.By) > 0 && c.Account == 0 {
		return errors.New("--by sums the usage of one account: name it with --account")
	}
	return nil
}

// Run lists usage by hour, or sums it.
func (c *usageCommand) Run(ctx context.Context, m *Main) error {
	if len(c.By) > 0 {
		return c.sum(ctx, m)
	}
	if !c.From.IsZero() && !c.To.IsZero() && !c.From.Before(c.To) {
		return errors.New("the last day is before the first one: --to is the day after it")
	}
	var csvErr error
	err := show(m, &c.operator, func(w *writer.Client) ([]writer.UsageRow, error) {
		rows, err := w.Usage(ctx, writer.UsageQuery{Account: c.Account, From: c.From, To: c.To})
		if err == nil && len(rows) == 0 {
			err = checkKnown(ctx, w, c.Account, 0)
		}
		return rows, err
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
	return cmp.Or(err, csvErr)
}

// sum lists the usage of an account in total for each value of --by.
func (c *usageCommand) sum(ctx context.Context, m *Main) error {
	from, to := "", ""
	if !c.From.IsZero() {
		from = c.From.Format(time.DateOnly)
	}
	if !c.To.IsZero() {
		to = c.To.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	days, err := writer.ParseDays(from, to, m.Now())
	if err != nil {
		return err
	}
	var csvErr error
	err = show(m, &c.operator, func(w *writer.Client) ([]writer.UsageSum, error) {
		return w.UsageSums(ctx, writer.UsageSumQuery{Account: c.Account, Days: days, By: c.By})
	}, func(table *tabwriter.Writer, sums []writer.UsageSum) {
		if c.CSV {
			csvErr = c.sumsCSV(m.Stdout, sums)
			return
		}
		var head []any
		for _, name := range c.sumColumns() {
			head = append(head, strings.ToUpper(name))
		}
		row(table, head...)
		for _, u := range sums {
			var cells []any
			for _, cell := range c.sumCells(u) {
				cells = append(cells, cell)
			}
			row(table, cells...)
		}
	})
	return cmp.Or(err, csvErr)
}

func (c *usageCommand) sumColumns() []string {
	return append(slices.Clone(c.By), "found", "not_found", "failed")
}

func (c *usageCommand) sumCells(u writer.UsageSum) (cells []string) {
	by := map[string]string{writer.ByDay: u.Day, writer.ByKey: fmt.Sprint(u.Key), writer.ByEndpoint: u.Endpoint}
	for _, name := range c.By {
		cells = append(cells, by[name])
	}
	return append(cells, fmt.Sprint(u.Found), fmt.Sprint(u.NotFound), fmt.Sprint(u.Failed))
}

func (c *usageCommand) sumsCSV(w io.Writer, sums []writer.UsageSum) error {
	out := csv.NewWriter(w)
	out.Write(c.sumColumns())
	for _, u := range sums {
		out.Write(c.sumCells(u))
	}
	out.Flush()
	return out.Error()
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
