package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// india measures the service on a register as large as the country's, made up from a seed
// in the official formats. What it makes is kept in its directory, so that a later run can
// leave out the import.
type india struct {
	options
	program string
	large   *register
	small   *register // of smallCompanies, for comparison
	rows    []figureRow
	points  []point      // of the graph
	made    map[int]bool // the registers that this run has made, by companies
}

// smallCompanies is the size that lookups are compared with.
const smallCompanies = 50_000

// hotPathCompanies is the size that lookups alone are measured on under load.
const hotPathCompanies = 500_000

// graphSizes are the other sizes, in companies, that the graph shows.
var graphSizes = []int{10_000, smallCompanies, 200_000, hotPathCompanies, 1_000_000}

// figureRow is one line of the printed table.
type figureRow struct{ what, measured, goal string }

func (i *india) row(what, goal, format string, args ...any) {
	i.rows = append(i.rows, figureRow{what, fmt.Sprintf(format, args...), goal})
	fmt.Fprintf(os.Stderr, "%s: %s\n", what, i.rows[len(i.rows)-1].measured)
}

// runIndia measures all of it and prints the table.
func (o options) runIndia(ctx context.Context) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	o.dir = dir
	i := &india{options: o, made: map[int]bool{}}
	if i.program, err = build(ctx, dir); err != nil {
		return err
	}
	i.large, i.small = i.register(dir, o.companies), i.register(dir, min(smallCompanies, o.companies))
	if i.against != "" {
		return i.compare(ctx)
	}
	if i.only != "" {
		return i.measureServing(ctx)
	}
	for _, step := range []func(context.Context) error{
		i.measureImport, i.measureServing, i.drawGraph, i.printTable, i.printPlans,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (i *india) printTable(context.Context) error {
	fmt.Printf("%d companies and %d LLPs, %d directors, %d appointments, %d partners; %.2f GB of CSV\n\n",
		i.large.counts["company"], i.large.counts["llp"], i.large.counts["director"], i.large.counts["appointment"],
		i.large.counts["partner"], float64(i.large.sourceBytes)/1e9)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tmeasured\tto reach\t")
	for _, r := range i.rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", r.what, r.measured, r.goal)
	}
	return table.Flush()
}

// printPlans prints how SQLite runs each statement on the large register.
func (i *india) printPlans(context.Context) error {
	for _, name := range planNames() {
		steps, err := i.plan(name)
		if err != nil {
			return err
		}
		fmt.Printf("\nplan of %s:\n  %s\n", name, strings.Join(steps, "\n  "))
	}
	return nil
}
