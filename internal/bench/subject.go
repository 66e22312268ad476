package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// subject is one way to serve, measured beside the others.
type subject struct {
	name  string
	start func(context.Context) (*process, error)
}

// result is what the rounds of a subject came to.
type result struct {
	name         string
	outcomes     []outcome
	all, private int64 // resident memory after the last round
}

// subjects are the first three that requests are compared on, what a log line costs, and
// the two engines of another build where there is one to compare with.
func (o options) subjects(d *dataset) []subject {
	edge := func(name, program, engine, log string) subject {
		return subject{name, func(ctx context.Context) (*process, error) { return d.startEdge(ctx, program, engine, log) }}
	}
	list := []subject{
		{"constant body, net/http", d.startConstant},
		edge("native, without Wasm", d.program, "native", "errors"),
		edge("wazero", d.program, "wazero", "errors"),
		edge("wazero, one log line a request", d.program, "wazero", "all"),
	}
	if o.against != "" {
		list = append(list, edge("native of the other build", o.against, "native", "errors"),
			edge("wazero of the other build", o.against, "wazero", "errors"))
	}
	return list
}

// oneCore limits a server's scheduler to the core that it is pinned to.
var oneCore = []string{"GOMAXPROCS=1"}

func (d *dataset) startConstant(ctx context.Context) (*process, error) {
	address, err := newAddress()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, serverCore, address, "/", append(oneCore, "BENCH_ADDRESS="+address), self, "-constant")
}

func (d *dataset) startWriter(ctx context.Context) (*process, error) {
	address, err := newAddress()
	if err != nil {
		return nil, err
	}
	return start(ctx, loadCore, address, "/", []string{"REGEDGE_TOKEN=" + d.tokens.Operator}, d.program, "writer",
		"--listen", address, "--database", d.path("ledger.db"), "--access", d.path("access.db"))
}

// startEdge runs a writer and an edge that stands on it, on a state directory of its own
// on the disk of the databases.
func (d *dataset) startEdge(ctx context.Context, program, engine, log string) (*process, error) {
	center, err := d.startWriter(ctx)
	if err != nil {
		return nil, err
	}
	edge, err := d.startEdgeOn(ctx, center, program, engine, log, d.tokens.Node, d.path("state"))
	if err != nil {
		center.stop()
		return nil, err
	}
	edge.below = center
	return edge, nil
}

// startEdgeOn runs an edge that stands on a writer, as the node of a token.
func (d *dataset) startEdgeOn(ctx context.Context, center *process, program, engine, log, token, state string) (*process, error) {
	address, err := newAddress()
	if err != nil {
		return nil, err
	}
	return start(ctx, serverCore, address, "/readyz", append(oneCore, "REGEDGE_TOKEN="+token), program,
		d.edgeArgs(center, address, engine, log, state)...)
}

func (d *dataset) edgeArgs(center *process, address, engine, log, state string) []string {
	return []string{
		"edge", "--listen", address, "--engine", engine, "--log", log,
		"--registry", d.path("registry.db"), "--access", d.path("access.db"), "--writer", center.url, "--state", state,
	}
}

// measure lets the subjects take turns.
func (o options) measure(ctx context.Context, set *dataset) ([]result, error) {
	if err := stayOnCore(loadCore); err != nil {
		return nil, err
	}
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

// warmUp is how long a subject is loaded before it is measured: leases are granted,
// pages cached.
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

// measure runs the load and reads what the server computed meanwhile.
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

// lookup asks for a random company with a random key.
func (d *dataset) lookup(buf []byte, random *rand.Rand) []byte {
	buf = append(buf, "GET /v1/companies/"...)
	buf = append(buf, d.cins[random.IntN(len(d.cins))]...)
	buf = append(buf, " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer "...)
	buf = append(buf, d.keys[random.IntN(len(d.keys))]...)
	return append(buf, "\r\n\r\n"...)
}

// constantBody is as long as a usual company.
const constantBodySize = 1100

// serveConstant is the floor: net/http with a body that is always the same.
func serveConstant(ctx context.Context) error {
	body := make([]byte, constantBodySize)
	length := strconv.Itoa(len(body))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		w.Write(body)
	})}
	listener, err := net.Listen("tcp", os.Getenv("BENCH_ADDRESS"))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
