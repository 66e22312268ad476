package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler"
	"regedge/schema"
)

// planNames are the statements that read the registry.
func planNames() []string {
	names := slices.Sorted(maps.Keys(handler.Statements()))
	return slices.DeleteFunc(names, func(name string) bool { return name == "access" })
}

// plan lists the steps of a statement on the large register, with its parameters bound to
// nothing: SQLite does not plan by their values.
func (i *india) plan(name string) (steps []string, err error) {
	uri, err := schema.FileURI(i.large.path("registry.db"), true)
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
