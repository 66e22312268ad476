package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"text/tabwriter"
)

// figure is one figure of a metering benchmark, and its goal.
type figure struct{ what, folder, benchmark, unit, goal string }

var figures = []figure{
	{"a charge in the process, journalled, 1 caller", "./replicate/metering/meter", "BenchmarkCharge/callers=1", "ns/op", ""},
	{"a charge in the process, journalled, 16 callers", "./replicate/metering/meter", "BenchmarkCharge/callers=16", "ns/op", ""},
	{"what metering adds to a lookup, 16 callers", "./host/engine", "BenchmarkMetering", "%metering", "at most 25"},
	{"the same in processor time, the writer's included", "./host/engine", "BenchmarkMetering", "%processor", ""},
	{"usage rows that the writer applies, on a file", "./replicate/metering/ledger", "BenchmarkApply", "rows/s", "at least 50000"},
	{"the same by a second of processor time", "./replicate/metering/ledger", "BenchmarkApply", "rows/processor-s", ""},
	{"1,000 edges that sync each second over HTTP, with them", "./replicate/metering/writer", "BenchmarkEdges", "cores", "less than 1"},
	{"processor time of a lookup, 2 goroutines on 2 cores", "./host/engine", "BenchmarkCores", "of-one-core/2-cores-2-goroutines", "at most 1.10"},
	{"the same, 8 goroutines", "./host/engine", "BenchmarkCores", "of-one-core/2-cores-8-goroutines", "at most 1.10"},
	{"2 goroutines, each with a component of its own: what is the machine's", "./host/engine", "BenchmarkCores", "of-one-core/apart", ""},
	{"their waits for locks by a lookup", "./host/engine", "BenchmarkCores", "ns-locked-out/2-cores-8-goroutines", ""},
	{"memory of an edge with 100,000 warm accounts", "./replicate/metering/meter", "BenchmarkWarmAccounts", "MB", "less than 60"},
}

// runMetering runs the metering benchmarks and prints their figures.
func runMetering(ctx context.Context) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "metering\tmeasured\tto reach\t")
	for _, f := range figures {
		value, err := f.measure(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s %s\t%s\t\n", f.what, value, f.unit, f.goal)
	}
	return table.Flush()
}

// measure runs the figure's benchmark.
func (f figure) measure(ctx context.Context) (string, error) {
	pattern := "^" + strings.ReplaceAll(f.benchmark, "/", "$/^") + "$"
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, f.folder)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run %s: %w\n%s", f.benchmark, err, out)
	}
	found := regexp.MustCompile(`(\S+) ` + regexp.QuoteMeta(f.unit)).FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("run %s: no %s in\n%s", f.benchmark, f.unit, out)
	}
	return string(found[1]), nil
}
