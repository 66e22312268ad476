package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler"
	"regedge/internal/testkit"
	"regedge/schema"
)

// largeBench measures the service with a registry as large as the country's, generated from a seed in
// the official formats. The files and databases are kept in a directory, so that a later run can
// leave out the import.
type largeBench struct {
	options
	program string
	large   *registry
	small   *registry // of smallCompanies, for comparison
	rows    []figureRow
	points  []point      // of the graph
	made    map[int]bool // whether this run has made the registry of so many companies
}

// smallCompanies is the size of the registry that lookups are compared with.
const smallCompanies = 50_000

// hotPathCompanies is the size of the registry for a load of lookups alone.
const hotPathCompanies = 500_000

// graphSizes are the other sizes of the graph, in companies.
var graphSizes = []int{10_000, smallCompanies, 200_000, hotPathCompanies, 1_000_000}

// figureRow is one line of the printed table.
type figureRow struct{ what, measured, goal string }

func (b *largeBench) row(what, goal, format string, args ...any) {
	b.rows = append(b.rows, figureRow{what, fmt.Sprintf(format, args...), goal})
	fmt.Fprintf(os.Stderr, "%s: %s\n", what, b.rows[len(b.rows)-1].measured)
}

// runLarge runs all measurements and prints the table.
func (o options) runLarge(ctx context.Context) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	o.dir = dir
	b := &largeBench{options: o, made: map[int]bool{}}
	if b.program, err = testkit.BuildRegedge(ctx, dir); err != nil {
		return err
	}
	b.large, b.small = b.registry(o.companies), b.registry(min(smallCompanies, o.companies))
	if b.against != "" {
		return b.compare(ctx)
	}
	if b.only != "" {
		return b.measureServing(ctx)
	}
	for _, step := range []func(context.Context) error{
		b.measureImport, b.measureServing, b.drawGraph, b.printTable, b.printPlans,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *largeBench) printTable(context.Context) error {
	fmt.Printf("%d companies and %d LLPs, %d directors, %d appointments, %d partners; %.2f GB of CSV\n\n",
		b.large.counts["company"], b.large.counts["llp"], b.large.counts["director"], b.large.counts["appointment"],
		b.large.counts["partner"], float64(b.large.sourceBytes)/1e9)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tmeasured\tto reach\t")
	for _, r := range b.rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", r.what, r.measured, r.goal)
	}
	return table.Flush()
}

// printPlans prints SQLite's plan of each statement on the large registry.
func (b *largeBench) printPlans(context.Context) error {
	for _, name := range planNames() {
		steps, err := b.plan(name)
		if err != nil {
			return err
		}
		fmt.Printf("\nplan of %s:\n  %s\n", name, strings.Join(steps, "\n  "))
	}
	return nil
}

// planNames are the names of the statements that read the registry.
func planNames() []string {
	names := slices.Sorted(maps.Keys(handler.Statements()))
	return slices.DeleteFunc(names, func(name string) bool { return name == "access" })
}

// plan lists the steps of SQLite's plan of a statement on the large registry. Its parameters are not
// bound, since the plan does not depend on them.
func (b *largeBench) plan(name string) (steps []string, err error) {
	uri, err := schema.FileURI(b.large.path("registry.db"), true)
	if err != nil {
		return nil, err
	}
	c, err := sqlite3.Open(uri)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := schema.Prepare(c, true); err != nil {
		return nil, err
	}
	explain, _, err := c.Prepare("EXPLAIN QUERY PLAN " + handler.Statements()[name])
	if err != nil {
		return nil, fmt.Errorf("explain %s: %w", name, err)
	}
	defer explain.Close()
	for explain.Step() {
		steps = append(steps, explain.ColumnText(3))
	}
	return steps, explain.Err()
}
