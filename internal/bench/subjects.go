package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// subject is one way to serve, measured beside the others.
type subject struct {
	name  string
	start func(context.Context) (*process, error)
}

// result is the outcome of all rounds of a subject.
type result struct {
	name         string
	outcomes     []outcome
	all, private int64 // resident memory after the last round
}

// subjects are a constant body, a plain server, both engines, the component with a log line for each request
// and on two cores, and both engines of another build if there is one to compare with.
func (o options) subjects(d *dataset) []subject {
	edgeOn := func(core int, name, program, engine, log string) subject {
		return subject{name, func(ctx context.Context) (*process, error) { return d.startEdge(ctx, core, program, engine, log) }}
	}
	edge := func(name, program, engine, log string) subject { return edgeOn(serverCore, name, program, engine, log) }
	list := []subject{
		{"constant body, net/http", d.startConstant},
		{"plain Go, net/http and SQLite", d.startPlain},
		edge("native, without Wasm", d.program, "native", "errors"),
		edge("wazero", d.program, "wazero", "errors"),
		edge("wazero, one log line a request", d.program, "wazero", "all"),
		edgeOn(bothCores, "wazero, on the core of the load as well", d.program, "wazero", "errors"),
	}
	if o.against != "" {
		list = append(list, edge("native of the other build", o.against, "native", "errors"),
			edge("wazero of the other build", o.against, "wazero", "errors"))
	}
	return list
}

func (d *dataset) startConstant(ctx context.Context) (*process, error) {
	return startSelf(ctx, func(address string) []string { return []string{"-constant", address} })
}

// startPlain starts a plain server on the databases of the edges, with a new file for its charges.
func (d *dataset) startPlain(ctx context.Context) (*process, error) {
	return startSelf(ctx, func(address string) []string { return []string{"-plain", address, "-dir", d.dir} })
}

// startSelf starts this program as a server.
func startSelf(ctx context.Context, args func(address string) []string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, serverCore, "/", nil, self, args)
}

func (d *dataset) startWriter(ctx context.Context) (*process, error) {
	return start(ctx, loadCore, "/readyz", []string{"REGEDGE_TOKEN=" + d.tokens.Operator}, d.program, func(address string) []string {
		return []string{"writer", "--listen", address, "--database", d.path("ledger.db"), "--access", d.path("access.db")}
	})
}

// startEdge starts a writer and an edge, whose state is kept on the same disk as the databases.
func (d *dataset) startEdge(ctx context.Context, core int, program, engine, log string) (*process, error) {
	writer, err := d.startWriter(ctx)
	if err != nil {
		return nil, err
	}
	edge, err := d.startEdgeOf(ctx, writer, core, program, engine, log, d.tokens.Node, d.path("state"))
	if err != nil {
		writer.stop()
		return nil, err
	}
	edge.writer = writer
	return edge, nil
}

// startEdgeOf starts an edge of a writer that is running, with the token of its node.
func (d *dataset) startEdgeOf(ctx context.Context, writer *process, core int, program, engine, log, token, state string) (*process, error) {
	return start(ctx, core, "/readyz", []string{"REGEDGE_TOKEN=" + token}, program, d.edgeArgs(writer, engine, log, state))
}

func (d *dataset) edgeArgs(writer *process, engine, log, state string) func(address string) []string {
	return func(address string) []string {
		return []string{
			"edge", "--listen", address, "--engine", engine, "--log", log,
			"--registry", d.path("registry.db"), "--access", d.path("access.db"), "--writer", writer.url, "--state", state,
		}
	}
}

// measure measures all subjects in turns.
func (o options) measure(ctx context.Context, set *dataset) ([]result, error) {
	leave, err := stayOnCore(loadCore)
	if err != nil {
		return nil, err
	}
	defer leave()
	subjects := o.subjects(set)
	results := make([]result, len(subjects))
	for round := range o.rounds {
		for i, s := range subjects {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-40s", round+1, o.rounds, s.name)
			results[i].name = s.name
			if err := o.round(ctx, set, s, &results[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "\r%70s\r", "")
	return results, nil
}

// warmUp is how long a subject is loaded before it is measured, so that leases are granted and pages
// cached.
const warmUp = 2 * time.Second

func (o options) round(ctx context.Context, set *dataset, s subject, into *result) error {
	server, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	l := load{address: server.address, connections: o.connections, length: warmUp, next: set.lookup}
	if _, err := l.run(); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	l.length = o.length
	measured, err := l.measure(server)
	if err != nil {
		return err
	}
	if measured.failed() > 0 {
		return fmt.Errorf("not every answer was 200: %v", measured.statuses)
	}
	into.outcomes = append(into.outcomes, measured)
	into.all, into.private, err = server.resident()
	return err
}

// measure runs the load and measures the server's processor time.
func (l load) measure(server *process) (outcome, error) {
	before, err := server.processorTime()
	if err != nil {
		return outcome{}, err
	}
	measured, err := l.run()
	if err != nil {
		return outcome{}, err
	}
	after, err := server.processorTime()
	measured.processor = (after - before) / time.Duration(measured.requests)
	return measured, err
}

// lookup appends the request of a random company with a random key.
func (d *dataset) lookup(buf []byte, random *rand.Rand) []byte {
	buf = append(buf, "GET /v1/companies/"...)
	buf = append(buf, d.cins[random.IntN(len(d.cins))]...)
	buf = append(buf, " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer "...)
	buf = append(buf, d.keys[random.IntN(len(d.keys))]...)
	return append(buf, "\r\n\r\n"...)
}

// constantBodySize is about the size of a company, in bytes.
const constantBodySize = 1100

// serveConstant is the floor of a server's cost: net/http with a constant body.
func serveConstant(ctx context.Context, address string) error {
	body := make([]byte, constantBodySize)
	length := strconv.Itoa(len(body))
	return serve(ctx, address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		w.Write(body)
	}))
}

func servePlain(ctx context.Context, address, dir string) error {
	charges := filepath.Join(dir, "plain.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.RemoveAll(charges + suffix); err != nil {
			return err
		}
	}
	server, err := newPlain(filepath.Join(dir, "access.db"), filepath.Join(dir, "registry.db"), charges)
	if err != nil {
		return err
	}
	return serve(ctx, address, server.routes())
}

// serve serves HTTP until ctx ends.
func serve(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{Handler: handler}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// The subjects that ratios refer to.
const (
	ofConstant = iota
	ofPlain
	ofNative
)

// printTable prints the medians of each subject.
func printTable(results []result) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "subject\trequests/s\tmin\tmax\tof native\tof plain Go\tCPU µs\tof the constant\tp50\tp99\tresident\twithout files\t")
	for _, r := range results {
		rates := r.rates()
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%.1f\t%.2f\t%s\t%s\t%.0f MB\t%.0f MB\t\n", r.name,
			r.perSecond(), rates[0], rates[len(rates)-1], r.share(&results[ofNative], perSecond), r.share(&results[ofPlain], perSecond),
			r.median(func(o outcome) time.Duration { return o.processor }).Seconds()*1e6, r.share(&results[ofConstant], processor),
			r.median(func(o outcome) time.Duration { return o.p50 }).Round(time.Microsecond),
			r.median(func(o outcome) time.Duration { return o.p99 }).Round(10*time.Microsecond),
			float64(r.all)/(1<<20), float64(r.private)/(1<<20))
	}
	w.Flush()
}

func perSecond(o outcome) float64 { return o.perSecond }
func processor(o outcome) float64 { return o.processor.Seconds() }

// rates are the requests a second of the rounds, sorted.
func (r *result) rates() []float64 {
	var rates []float64
	for _, o := range r.outcomes {
		rates = append(rates, o.perSecond)
	}
	slices.Sort(rates)
	return rates
}

// share is this subject's figure as a part of another's: the median of the rounds' ratios. Both figures of a
// round were measured shortly after one another.
func (r *result) share(other *result, figure func(outcome) float64) float64 {
	var shares []float64
	for n, o := range r.outcomes {
		shares = append(shares, figure(o)/figure(other.outcomes[n]))
	}
	slices.Sort(shares)
	return middle(shares)
}

func (r *result) perSecond() float64 { return middle(r.rates()) }

func (r *result) median(of func(outcome) time.Duration) time.Duration {
	var values []time.Duration
	for _, o := range r.outcomes {
		values = append(values, of(o))
	}
	slices.Sort(values)
	return middle(values)
}

func middle[T cmp.Ordered](sorted []T) T { return sorted[len(sorted)/2] }
