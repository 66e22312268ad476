package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/host/engine"
	"regedge/host/server"
	"regedge/host/sqlite"
)

// searching asks the handler in this process, without HTTP and without a meter, on one
// connection as an edge has them.
type searching struct {
	store  *sqlite.Store
	native *engine.Native
}

// allowed is a meter that grants everything.
type allowed struct{}

func (allowed) Charge(context.Context, charge.Request) charge.Verdict {
	return charge.Verdict{RateLimit: 1, RateRemaining: 1, RateReset: 1, CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent}
}

func (allowed) Void(context.Context, string) error { return nil }

func (r *register) openSearch() (*searching, error) {
	s, err := sqlite.Open(sqlite.Config{Path: r.path("registry.db"), Connections: 1, Hold: 10 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	return &searching{s, engine.NewNative(engine.Parts{Registry: s, Meter: allowed{}, Clock: engine.Clock{}, Random: engine.Random{}})}, nil
}

// time is how long one search takes. A refused query is no error: the worst ones are.
func (s *searching) time(ctx context.Context, name string) (time.Duration, error) {
	request := server.Request{
		Method: "GET", Target: searchTarget(name), Client: "127.0.0.1",
		Header: []handler.Header{{Name: "Authorization", Value: "Bearer " + ident.SandboxKey}},
	}
	var response handler.Response
	begin := time.Now()
	err := s.native.Answer(ctx, &request, &response)
	length := time.Since(begin)
	if err == nil && response.Status >= 500 {
		err = fmt.Errorf("%q: %s", name, response.Body)
	}
	return length, err
}

// measureSearch times searches one by one: the mix, and the worst queries.
func (i *india) measureSearch(ctx context.Context) error {
	s, err := i.large.openSearch()
	if err != nil {
		return err
	}
	defer s.store.Close()
	if err := i.large.warm(); err != nil {
		return err
	}
	queries := typedQueries(i.large.names, 5000)
	mix, err := s.best(ctx, queries, i.rounds)
	if err != nil {
		return err
	}
	order := slices.Clone(mix)
	slices.Sort(order)
	i.row("name search, a mix, in the process", "p50 under 300 µs, p99 under 10 ms", "%s, slowest %s",
		latency{order[len(order)/2], order[len(order)*99/100]}, order[len(order)-1].Round(10*time.Microsecond))
	tell("slowest of the mix", queries, mix)

	worst, err := s.best(ctx, worstQueries, 2*i.rounds)
	if err != nil {
		return err
	}
	order = slices.Clone(worst)
	slices.Sort(order)
	i.row(fmt.Sprintf("the worst %d queries", len(worstQueries)), "p99 under 25 ms", "p99 %s, slowest %s",
		order[len(order)*99/100].Round(10*time.Microsecond), order[len(order)-1].Round(10*time.Microsecond))
	tell("slowest of the worst", worstQueries, worst)
	return nil
}

// best is the least time of each query over several rounds, for what a shared machine adds
// is never negative. The first round warms up.
func (s *searching) best(ctx context.Context, queries []string, rounds int) ([]time.Duration, error) {
	least := make([]time.Duration, len(queries))
	for range rounds {
		for n, q := range queries {
			length, err := s.time(ctx, q)
			if err != nil {
				return nil, err
			}
			if least[n] == 0 || length < least[n] {
				least[n] = length
			}
		}
	}
	return least, ctx.Err()
}

// tell names the slowest queries.
func tell(title string, queries []string, lengths []time.Duration) {
	order := make([]int, len(queries))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(lengths[b] - lengths[a]) })
	for _, n := range order[:min(8, len(order))] {
		fmt.Fprintf(os.Stderr, "  %s: %s %.60q\n", title, lengths[n].Round(time.Microsecond), queries[n])
	}
}
