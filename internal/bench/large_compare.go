package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"regedge/replicate/metering/writer"
)

// Two servers take turns in time slices. Other work on a shared machine usually lasts longer than a
// slice, so it affects both alike.
const (
	sliceLength    = 200 * time.Millisecond
	slicesARound   = 25
	warmUpOfSlices = 10
)

// compare measures the processor time of this build and another under both loads, in turns. The
// other build has databases of its own in -against-dir, if it does not read those of this one.
func (b *largeBench) compare(ctx context.Context) error {
	leave, err := stayOnCore(loadCore)
	if err != nil {
		return err
	}
	defer leave()
	if err := b.large.ready(ctx); err != nil {
		return err
	}
	hot, err := b.middling(ctx)
	if err != nil {
		return err
	}
	mix := func(r *registry) request { return r.mix() }
	lookups := func(r *registry) request { return r.lookup }
	for _, load := range []struct {
		name string
		r    *registry
		of   func(*registry) request
	}{
		{"mix", b.large, mix},
		{"lookups", hot, lookups},
	} {
		all, err := b.beside(ctx, load.r, load.of)
		if err != nil {
			return fmt.Errorf("%s: %w", load.name, err)
		}
		fmt.Printf("%s, %d companies: %s\n", load.name, load.r.companies, all)
	}
	return nil
}

// request appends a random request to a buffer.
type request = func([]byte, *rand.Rand) []byte

// turns are the processor times of a request in consecutive slices.
type turns struct{ this, other []time.Duration }

func (t turns) String() string {
	return fmt.Sprintf("%s; the other build %s; ratio %s", spread(t.this), spread(t.other), t.ratio())
}

// ratio is the median of the slices' ratios, with the quartiles.
func (t turns) ratio() string {
	var ratios []float64
	for n := range t.this {
		ratios = append(ratios, ratio(t.this[n], t.other[n]))
	}
	slices.Sort(ratios)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", middle(ratios), ratios[len(ratios)/4], ratios[len(ratios)*3/4])
}

// spread formats the minimum and the median of some times.
func spread(times []time.Duration) string {
	sorted := slices.Sorted(slices.Values(times))
	return fmt.Sprintf("%.1f µs at least, median %.1f", sorted[0].Seconds()*1e6, middle(sorted).Seconds()*1e6)
}

// other is the registry that the other build serves.
func (b *largeBench) other(ctx context.Context, r *registry) (*registry, error) {
	if b.againstDir == "" {
		return r, nil
	}
	other := &registry{companies: r.companies, dataset: dataset{
		dir: filepath.Join(b.againstDir, fmt.Sprint(r.companies)), program: b.against,
	}}
	return other, other.ready(ctx)
}

// beside compares an edge of this build with one of the other.
func (b *largeBench) beside(ctx context.Context, r *registry, of func(*registry) request) (turns, error) {
	other, err := b.other(ctx, r)
	if err != nil {
		return turns{}, fmt.Errorf("registry of the other build: %w", err)
	}
	near, err := r.startWriter(ctx)
	if err != nil {
		return turns{}, err
	}
	defer near.stop()
	writers := [2]*process{near, near}
	if other != r {
		if writers[1], err = other.startWriter(ctx); err != nil {
			return turns{}, err
		}
		defer writers[1].stop()
	}
	var edges [2]*process
	var requests [2]request
	for n, side := range []struct {
		r       *registry
		program string
	}{{r, b.program}, {other, b.against}} {
		edge, done, err := side.r.startNode(ctx, writers[n], side.program)
		if err != nil {
			return turns{}, err
		}
		defer done()
		edges[n], requests[n] = edge, of(side.r)
	}
	return b.inTurns([]*registry{r, other}, edges, requests)
}

// inTurns loads two servers in slices, in turns.
func (b *largeBench) inTurns(warmed []*registry, servers [2]*process, requests [2]request) (all turns, err error) {
	into := [2]*[]time.Duration{&all.this, &all.other}
	for turn := range b.rounds * slicesARound {
		if turn%slicesARound == 0 {
			for _, r := range warmed {
				if err := r.warm(); err != nil {
					return all, err
				}
			}
		}
		for n := range servers {
			if turn%2 == 1 {
				n = 1 - n
			}
			l := load{address: servers[n].address, connections: b.connections, length: sliceLength, next: requests[n]}
			measured, err := l.measure(servers[n])
			if err != nil {
				return all, err
			}
			if turn < warmUpOfSlices {
				continue
			}
			if measured.failed() > 0 {
				return all, fmt.Errorf("not every answer was 200: %v", measured.statuses)
			}
			*into[n] = append(*into[n], measured.processor)
		}
	}
	return all, nil
}

// startNode starts an edge with a node of its own; done stops it.
func (r *registry) startNode(ctx context.Context, near *process, program string) (edge *process, done func(), err error) {
	client := writer.NewClient(near.url, r.tokens.Operator, nil)
	name := fmt.Sprintf("compared-%d", time.Now().UnixNano())
	node, err := client.AddNode(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	state := r.path(name)
	edge, err = r.startEdgeOf(ctx, near, serverCore, program, "wazero", "errors", node.Token, state)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(state))
	}
	return edge, func() {
		edge.stop()
		_, _ = client.RetireNode(context.WithoutCancel(ctx), name, false) // its leases go back; a failure does no harm
		_ = os.RemoveAll(state)
	}, nil
}
