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

	"golang.org/x/sys/unix"
)

// point is the latencies of one size of registry, for the graph.
type point struct {
	names          int
	lookup, search latency
}

// latency is the median and the 99th percentile of a request's time.
type latency struct{ p50, p99 time.Duration }

func (l latency) String() string {
	return fmt.Sprintf("p50 %s, p99 %s", l.p50.Round(time.Microsecond), l.p99.Round(10*time.Microsecond))
}

// serving lists the measurements of requests.
var serving = []struct {
	name    string
	measure func(*largeBench, context.Context) error
}{
	{"latency", (*largeBench).measureLatency},
	{"search", (*largeBench).measureSearch},
	{"mix", (*largeBench).measureMix},
	{"lookups", (*largeBench).measureHotPath},
	{"cold", (*largeBench).measureColdStart},
}

func servingNames() (names []string) {
	for _, s := range serving {
		names = append(names, s.name)
	}
	return names
}

// measureServing runs the measurements of requests.
func (b *largeBench) measureServing(ctx context.Context) error {
	leave, err := stayOnCore(loadCore)
	if err != nil {
		return err
	}
	defer leave()
	if err := b.ready(ctx, b.small); err != nil {
		return err
	}
	if err := b.large.ready(ctx); err != nil {
		return err
	}
	for _, s := range serving {
		if b.only != "" && b.only != s.name {
			continue
		}
		if err := s.measure(b, ctx); err != nil {
			return err
		}
	}
	return nil
}

// ready makes a registry beside the large one. Without -reuse it makes its database again, since an
// earlier version of the program may have made it.
func (b *largeBench) ready(ctx context.Context, r *registry) error {
	if !b.reuse && !b.made[r.companies] && r.dir != b.large.dir {
		if err := r.drop(); err != nil {
			return err
		}
	}
	b.made[r.companies] = true
	return r.ready(ctx)
}

// ready makes the database and the keys of a registry unless they exist.
func (r *registry) ready(ctx context.Context) error {
	if err := r.generate(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(r.path("registry.db")); errors.Is(err, os.ErrNotExist) {
		if _, _, err := r.importAll(ctx); err != nil {
			return err
		}
	}
	if len(r.cins) == 0 {
		if err := r.look(); err != nil {
			return err
		}
	}
	if err := r.prepareKeys(ctx); err != nil {
		return err
	}
	return r.warm()
}

// warm reads the database into the page cache. It is called before each load, since a virtual machine
// may return cached pages to its host within seconds.
func (r *registry) warm() error {
	_, err := hashOf(r.path("registry.db"))
	return err
}

// measurePoint measures one registry: the minimum over the medians of several rounds, since other work
// on the machine only adds to them.
func (b *largeBench) measurePoint(ctx context.Context, r *registry, rounds int) (point, error) {
	p := point{names: int(r.counts["company"] + r.counts["llp"])}
	edge, err := r.startEdge(ctx, serverCore, r.program, "wazero", "errors")
	if err != nil {
		return p, err
	}
	defer edge.stop()
	queries := typedQueries(r.names, 5000)
	for round := range rounds + 1 { // the first one warms up: leases are granted, pages cached
		if err := r.warm(); err != nil {
			return p, err
		}
		for _, kind := range []struct {
			next func([]byte, *rand.Rand) []byte
			into *latency
		}{
			{r.lookup, &p.lookup},
			{func(buf []byte, random *rand.Rand) []byte { return r.search(buf, random, queries) }, &p.search},
		} {
			l := load{address: edge.address, connections: 1, length: b.length, next: kind.next}
			measured, err := l.run()
			if err == nil && round > 0 && measured.failed() > 0 {
				err = fmt.Errorf("not every answer was 200: %v", measured.statuses)
			}
			if err != nil {
				return p, err
			}
			if round > 0 {
				kind.into.least(latency{measured.p50, measured.p99})
			}
		}
	}
	return p, nil
}

func (l *latency) least(o latency) {
	if l.p50 == 0 {
		*l = o
		return
	}
	l.p50, l.p99 = min(l.p50, o.p50), min(l.p99, o.p99)
}

// measureLatency compares the large registry with the small one.
func (b *largeBench) measureLatency(ctx context.Context) error {
	var both [2]point
	for n, r := range []*registry{b.small, b.large} {
		p, err := b.measurePoint(ctx, r, b.rounds)
		if err != nil {
			return fmt.Errorf("%d companies: %w", r.companies, err)
		}
		both[n] = p
		b.points = append(b.points, p)
	}
	small, large := both[0].lookup, both[1].lookup
	b.row(fmt.Sprintf("company lookup by CIN over HTTP, %d companies", b.small.companies), "", "%s", small)
	b.row(fmt.Sprintf("the same, %d companies", b.large.companies), "p50 within 1.3 times, p99 within 2 times", "%s: %.2f and %.2f times",
		large, ratio(large.p50, small.p50), ratio(large.p99, small.p99))
	b.row("name search over HTTP", "", "%s", both[1].search)
	return nil
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// search appends the request of a random search with a random key.
func (r *registry) search(buf []byte, random *rand.Rand, queries []string) []byte {
	buf = append(append(buf, "GET "...), searchTarget(queries[random.IntN(len(queries))])...)
	buf = append(append(buf, " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer "...), r.keys[random.IntN(len(r.keys))]...)
	return append(buf, "\r\n\r\n"...)
}

// searchShare: one request of the mix in so many is a search.
const searchShare = 10

// mix returns a function that appends lookups and searches.
func (r *registry) mix() request {
	queries := typedQueries(r.names, 5000)
	return func(buf []byte, random *rand.Rand) []byte {
		if random.IntN(searchShare) == 0 {
			return r.search(buf, random, queries)
		}
		return r.lookup(buf, random)
	}
}

// measureMix measures the mix under load.
func (b *largeBench) measureMix(ctx context.Context) error {
	mix, err := b.underLoad(ctx, b.large, b.large.mix())
	if err != nil {
		return err
	}
	b.row("one core, 16 connections, 90% lookups, 10% searches", "at least 12000/s, p99 under 10 ms, under 256 MB", "%s", mix)
	return nil
}

// middling is the registry for a load of lookups alone.
func (b *largeBench) middling(ctx context.Context) (*registry, error) {
	r := b.registry(min(hotPathCompanies, b.companies))
	return r, b.ready(ctx, r)
}

// measureHotPath measures lookups alone under load.
func (b *largeBench) measureHotPath(ctx context.Context) error {
	r, err := b.middling(ctx)
	if err != nil {
		return err
	}
	hot, err := b.underLoad(ctx, r, r.lookup)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("one core, 16 connections, lookups in %d companies, %d keys", r.companies, len(r.keys)),
		"at least 28000/s, p99 under 5 ms, under 100 MB, WAL bounded", "%s", hot)
	return nil
}

// loaded is the result of several rounds of a load on an edge with one core.
type loaded struct {
	best    outcome
	rates   []float64 // of all rounds, sorted
	floor   turns     // in turns with a constant body from net/http
	private int64     // anonymous memory, in bytes
	log     int64     // size of the largest write-ahead log afterwards, in bytes
}

func (l loaded) String() string {
	return fmt.Sprintf("%.0f/s (median %.0f, least %.0f), p99 %s, %.1f µs of processor time a request, %d bytes an answer, %.0f MB, WAL %.1f MB; %s times the processor time of a constant body from net/http (%s) in turns",
		l.best.perSecond, middle(l.rates), l.rates[0], l.best.p99.Round(10*time.Microsecond),
		l.best.processor.Seconds()*1e6, l.best.bodyBytes, float64(l.private)/(1<<20), float64(l.log)/(1<<20),
		l.floor.ratio(), spread(l.floor.other))
}

// underLoad loads an edge in rounds. The first one warms up: leases are granted, pages cached. Then
// the edge takes turns with a server of a constant body, which shows how fast the machine is.
func (b *largeBench) underLoad(ctx context.Context, r *registry, next func([]byte, *rand.Rand) []byte) (loaded, error) {
	edge, err := r.startEdge(ctx, serverCore, r.program, "wazero", "errors")
	if err != nil {
		return loaded{}, err
	}
	defer edge.stop()
	constant, err := r.startConstant(ctx)
	if err != nil {
		return loaded{}, err
	}
	defer constant.stop()
	var all loaded
	l := load{address: edge.address, connections: b.connections, length: b.length, next: next}
	for round := range b.rounds {
		if err := r.warm(); err != nil {
			return loaded{}, err
		}
		measured, err := l.measure(edge)
		if err != nil {
			return loaded{}, err
		}
		if round == 0 && b.rounds > 1 {
			continue
		}
		if measured.failed() > 0 {
			return loaded{}, fmt.Errorf("not every answer was 200: %v", measured.statuses)
		}
		all.rates = append(all.rates, measured.perSecond)
		if measured.perSecond >= all.best.perSecond {
			all.best = measured
		}
	}
	slices.Sort(all.rates)
	for _, database := range []string{"registry.db", "access.db", "ledger.db"} {
		if info, err := os.Stat(r.path(database) + "-wal"); err == nil {
			all.log = max(all.log, info.Size())
		}
	}
	if _, all.private, err = edge.resident(); err != nil {
		return loaded{}, err
	}
	all.floor, err = b.inTurns([]*registry{r}, [2]*process{edge, constant}, [2]request{next, next})
	return all, err
}

// measureColdStart measures the time from an edge's start until its first answer, with a database that
// is not in the page cache.
func (b *largeBench) measureColdStart(ctx context.Context) error {
	r := b.large
	writer, err := r.startWriter(ctx)
	if err != nil {
		return err
	}
	defer writer.stop()
	var lengths []time.Duration
	for range 3 {
		if err := forget(r.path("registry.db")); err != nil {
			return err
		}
		length, err := r.firstAnswer(ctx, writer)
		if err != nil {
			return err
		}
		lengths = append(lengths, length)
	}
	slices.Sort(lengths)
	b.row("cold start of an edge: first answer", "under 1 s", "%s (slowest %s)", middle(lengths).Round(time.Millisecond), lengths[2].Round(time.Millisecond))
	return nil
}

// firstAnswer starts an edge and measures the time until its first answer to a lookup.
func (r *registry) firstAnswer(ctx context.Context, writer *process) (time.Duration, error) {
	state, err := os.MkdirTemp(r.dir, "state-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(state)
	begin := time.Now()
	edge, err := spawn(serverCore, []string{"REGEDGE_TOKEN=" + r.tokens.Node}, r.program, r.edgeArgs(writer, "wazero", "errors", state))
	if err != nil {
		return 0, err
	}
	defer edge.stop()
	l := load{address: edge.address, connections: 1, length: 0, next: r.lookup}
	for time.Since(begin) < readyLimit {
		if status, err := l.once(); err == nil && status == 200 {
			return time.Since(begin), nil
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 0, fmt.Errorf("the edge does not answer: %s", edge.Tail())
}

// forget drops a file from the page cache.
func forget(path string) error {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
