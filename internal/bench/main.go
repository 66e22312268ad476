// Command bench measures the speed of lookups: a load generator on one core against a server on
// another, with the official company data and made-up directors, metered and journalled. It prints
// medians of several rounds in which the subjects take turns, so that other work on the machine
// affects all of them alike; a ratio is the median of the rounds' ratios. On a shared machine, rely
// on the ratios and on the processor time of a request.
//
// With -large it measures a made-up registry of the country's size (make bench-india).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	dir         string
	data        string
	companies   int
	rounds      int
	length      time.Duration
	connections int
	constant    string
	plain       string
	metering    bool
	countrySize bool
	graph       string
	reuse       bool
	against     string
	againstDir  string
	only        string
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "build/bench", "directory of the databases, kept between runs")
	flag.StringVar(&o.data, "data", "../shared/data", "the official files; without them the registry is made up")
	flag.IntVar(&o.companies, "companies", 50_000, "companies to make up when there are no official files")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the medians are printed")
	flag.DurationVar(&o.length, "length", 5*time.Second, "length of one load")
	flag.IntVar(&o.connections, "connections", 16, "connections of a load")
	flag.BoolVar(&o.reuse, "reuse", false, "take the databases of an earlier run as they are, without the import")
	flag.StringVar(&o.against, "against", "", "another build of the program, measured beside this one; with -large, nothing else is measured")
	flag.StringVar(&o.againstDir, "against-dir", "", "directory of the other build's databases, where it does not read those of this build")
	flag.StringVar(&o.only, "only", "", "measure this alone of "+strings.Join(servingNames(), ", ")+"; with -large and -reuse")
	flag.StringVar(&o.constant, "constant", "", "serve a constant body on this address: the first subject, which the benchmark starts itself")
	flag.StringVar(&o.plain, "plain", "", "serve lookups without an edge on this address: the second subject, started likewise")
	flag.BoolVar(&o.metering, "metering", false, "measure the metering alone")
	flag.BoolVar(&o.countrySize, "large", false, "measure a registry as large as the country's")
	flag.StringVar(&o.graph, "graph", "", "file to draw the latencies of several sizes into, with -large")
	flag.Parse()
	if o.only != "" && (!o.countrySize || !o.reuse || !slices.Contains(servingNames(), o.only)) {
		fmt.Fprintf(os.Stderr, "bench: -only %s: want one of %s, with -large and -reuse\n", o.only, strings.Join(servingNames(), ", "))
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := o.run
	switch {
	case o.constant != "":
		run = func(ctx context.Context) error { return serveConstant(ctx, o.constant) }
	case o.plain != "":
		run = func(ctx context.Context) error { return servePlain(ctx, o.plain, o.dir) }
	case o.metering:
		run = runMetering
	case o.countrySize:
		run = o.runLarge
	}
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	set, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n", set.describe())
	results, err := o.measure(ctx, set)
	if err != nil {
		return err
	}
	printTable(results)
	fmt.Println()
	return runMetering(ctx)
}
