package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/host/engine"
	"regedge/host/sqlite"
	"regedge/internal/testkit/misspelt"
)

// searching calls the handler in this process, without HTTP and without a meter, on one database
// connection configured as at an edge.
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

func (r *registry) openSearch() (*searching, error) {
	s, err := sqlite.Open(sqlite.Config{Path: r.path("registry.db"), Connections: 1, ReadTx: 10 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	return &searching{s, engine.NewNative(engine.Parts{Registry: s, Meter: allowed{}, Clock: engine.Clock{}, Random: engine.Random{}})}, nil
}

// time measures the processor time of one search, in a goroutine that is locked to its thread. On a quiet
// machine it is the time that passes, and on a busy one it stays the same. An answer 4xx is no error:
// some of the worst queries are invalid.
func (s *searching) time(ctx context.Context, name string) (time.Duration, error) {
	request := handler.Request{
		Method: "GET", Target: searchTarget(name), ClientAddr: func() string { return "127.0.0.1" },
		Headers: []handler.Header{{Name: "Authorization", Value: "Bearer " + ident.SandboxKey}},
	}
	var response handler.Response
	begin, err := threadTime()
	if err != nil {
		return 0, err
	}
	err = s.native.Answer(ctx, &request, &response)
	end, failed := threadTime()
	err = errors.Join(err, failed)
	if err == nil && response.Status >= 500 {
		err = fmt.Errorf("%q: %s", name, response.Body)
	}
	return end - begin, err
}

// threadTime is the processor time that this thread has used.
func threadTime() (time.Duration, error) {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		return 0, fmt.Errorf("read the thread's clock: %w", err)
	}
	return time.Duration(used.Nano()), nil
}

// measureSearch times searches one by one: the mix, and the worst queries.
func (b *largeBench) measureSearch(ctx context.Context) error {
	runtime.LockOSThread() // see time
	defer runtime.UnlockOSThread()
	s, err := b.large.openSearch()
	if err != nil {
		return err
	}
	defer s.store.Close()
	if err := b.large.warm(); err != nil {
		return err
	}
	queries := typedQueries(b.large.names, 5000)
	mix, err := s.best(ctx, queries, b.rounds)
	if err != nil {
		return err
	}
	order := slices.Clone(mix)
	slices.Sort(order)
	b.row("name search, a mix, in the process", "p50 under 300 µs, p99 under 10 ms", "%s, slowest %s",
		latency{order[len(order)/2], order[len(order)*99/100]}, order[len(order)-1].Round(10*time.Microsecond))
	tell("slowest of the mix", queries, mix)

	worst, err := s.best(ctx, worstQueries, 2*b.rounds)
	if err != nil {
		return err
	}
	order = slices.Clone(worst)
	slices.Sort(order)
	b.row(fmt.Sprintf("the worst %d queries", len(worstQueries)), "p99 under 25 ms", "p99 %s, slowest %s",
		order[len(order)*99/100].Round(10*time.Microsecond), order[len(order)-1].Round(10*time.Microsecond))
	tell("slowest of the worst", worstQueries, worst)
	return b.measureSuggestions(ctx, s)
}

// measureSuggestions times misspelt searches, by kind and in all. Most of them are empty and have
// suggestions.
func (b *largeBench) measureSuggestions(ctx context.Context, s *searching) error {
	var all []time.Duration
	for _, kind := range []struct {
		what string
		make func(*rand.Rand, string) string
	}{{"misspelt names, with suggestions", misspelt.Typo}, {"names in other spellings, with suggestions", misspelt.Respelling}} {
		queries := misspeltQueries(b.large.names, 1000, kind.make)
		lengths, err := s.best(ctx, queries, b.rounds)
		if err != nil {
			return err
		}
		b.suggestionsRow(kind.what, lengths)
		tell("slowest of the "+kind.what, queries, lengths)
		all = append(all, lengths...)
	}
	b.suggestionsRow("both, with suggestions", all)
	return nil
}

func (b *largeBench) suggestionsRow(what string, lengths []time.Duration) {
	order := slices.Sorted(slices.Values(lengths))
	b.row(what, "p50 under 2 ms, p99 under 15 ms, slowest 50 ms", "%s, slowest %s",
		latency{order[len(order)/2], order[len(order)*99/100]}, order[len(order)-1].Round(10*time.Microsecond))
}

// misspeltQueries returns at most count queries, always the same for the same names.
func misspeltQueries(names []string, count int, misspell func(*rand.Rand, string) string) (list []string) {
	random := rand.New(rand.NewPCG(7, 8))
	for range count {
		if query := misspell(random, names[random.IntN(len(names))]); query != "" {
			list = append(list, query)
		}
	}
	return list
}

// best is the minimum time of each query over several rounds, since other work on the machine only
// adds to it. The first round warms up.
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

// tell prints the slowest queries.
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

// typed turns a registered name into a query as people type it: a prefix, words, a part, wrong
// spacing, abbreviations.
func typed(random *rand.Rand, name string) string {
	words := strings.Fields(name)
	switch random.IntN(7) {
	case 0: // a prefix
		return name[:min(len(name), 3+random.IntN(len(name)))]
	case 1: // one word and the prefix of another
		one, other := words[random.IntN(len(words))], words[random.IntN(len(words))]
		return one + " " + other[:1+random.IntN(len(other))]
	case 2: // everything from a word on
		return strings.Join(words[random.IntN(len(words)):], " ")
	case 3: // a part
		from := random.IntN(max(1, len(name)-4))
		return name[from:min(len(name), from+3+random.IntN(12))]
	case 4: // joined
		return strings.Join(words[:min(len(words), 2)], "")
	case 5: // split
		at := 1 + random.IntN(min(len(name)-1, 12))
		return name[:at] + " " + name[at:]
	}
	return strings.NewReplacer("PRIVATE", "Pvt.", "LIMITED", "Ltd.", " AND ", " & ", "COMPANY", "Co.").Replace(name)
}

// typedQueries returns count typed queries, always the same for the same names.
func typedQueries(names []string, count int) (list []string) {
	random := rand.New(rand.NewPCG(5, 6))
	for range count {
		list = append(list, typed(random, names[random.IntN(len(names))]))
	}
	return list
}

// worstQueries are queries that are no names, and queries that are hard to answer.
var worstQueries = []string{
	"limited", "private", "private limited", "pvt ltd", "limited private", "limited p", "private l", "ltd", "llp", "lim", "li", "l",
	"a", "e", "s", "ab", "a b", "a b c d e f g", "in", "india", "india limited", "india private limited", "and", "and sons", "the",
	"company limited", "producer company limited", "services", "services private", "services limited private", "solutions pvt ltd",
	"tion", "ent", "ing", "rivat", "mited", "ateli", "privatelimited", "te lim", "s p", "s private", "e limited", "a limited",
	"enterprises trading", "trading enterprises", "consultants services solutions", "private solutions services",
	"%", "%%%", "_", "*", "\"", "\"\"\"", "'", "\\", "(", "^", "$", "-", "...", "AND", "OR", "NOT", "NEAR(a b)", "tata*", "a OR b", "\x00",
	"😀", "😀😀😀", "भारत", "भारत स्टील लिमिटेड", "é", "ＴＡＴＡ", "\u200b\u200b\u200b", "m/s", "&", "& co",
	strings.Repeat("a", 200), strings.Repeat("a ", 100), strings.Repeat("ab ", 66), strings.Repeat("limited ", 25),
	strings.Repeat("privatelimited", 14), strings.Repeat("भ", 200), strings.Repeat("%", 200), strings.Repeat("private limited india ", 9),
	strings.Repeat("services ", 22), strings.Repeat("ing", 66), strings.Repeat("&", 200),
}

// searchTarget is the request target of a search.
func searchTarget(name string) string {
	return "/v1/search/companies?limit=5&name=" + url.QueryEscape(name)
}
