// Command scale models what a push costs with 10, 100 and 1,000 edges, from costs that were measured
// with one, and writes the table and the graph of docs/scale.md:
//
//	go run ./internal/scale
package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// The measured costs of a registry of all India: 3.66 million companies, 5.3 GB, two cores
// (docs/scale.md says where each is from). Sizes are in bytes, rates in bytes a second.
const (
	registryBytes = 5.3e9
	// percentBytes is the number of bytes that the primary sent to a replica for a push of 1% of the companies.
	percentBytes = 0.3e9
	// streamRate is the rate of one replica that copies a registry, primary and replica on two cores.
	streamRate = registryBytes / 212
)

// The assumptions: what the network and the machines have that nobody measured.
const (
	uplink        = 125e6 // of the primary and of a relay: 1 Gbit/s
	streamsAtOnce = 8     // streams that a primary's or relay's processors feed at full rate: one a core
	relays        = 10    // edges that feed others
)

// counts are the numbers of edges in the table.
var counts = []int{1, 10, 100, 1000}

// release is the data that a push sends to each edge.
type release struct {
	name  string
	bytes float64
}

var releases = []release{{"1% of the companies", percentBytes}, {"a full release", registryBytes}}

// spread is a way to distribute a release to all edges.
type spread struct {
	name, color string
	// sent is the number of bytes that leave the primary for n edges, took the time until all have them.
	sent func(r release, n int) float64
	took func(r release, n int) time.Duration
}

var spreads = []spread{
	{"from the primary", "#bc4c00",
		func(r release, n int) float64 { return r.bytes * float64(n) },
		func(r release, n int) time.Duration { return feed(r.bytes, n) }},
	{"by ten relays", "#1f6feb",
		func(r release, n int) float64 { return r.bytes * float64(min(n, relays)) },
		func(r release, n int) time.Duration {
			if n <= relays {
				return feed(r.bytes, n)
			}
			return feed(r.bytes, relays) + feed(r.bytes, (n-relays+relays-1)/relays)
		}},
	{"by object storage", "#1a7f37",
		func(r release, _ int) float64 { return r.bytes },
		func(r release, _ int) time.Duration { return seconds(r.bytes/uplink) + seconds(r.bytes/streamRate) }},
}

// feed is how long one machine takes to send bytes to each of n others: as long as a single stream, or
// as its uplink, or as its processors, whichever is slowest.
func feed(bytes float64, n int) time.Duration {
	all := min(uplink, streamRate*streamsAtOnce)
	return seconds(max(bytes/streamRate, bytes*float64(n)/all))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// table is the table of the page.
func table() string {
	var b strings.Builder
	b.WriteString("| push | edges |")
	for _, s := range spreads {
		fmt.Fprintf(&b, " %s |", s.name)
	}
	b.WriteString("\n|---|---|---|---|---|\n")
	for _, r := range releases {
		for _, n := range counts {
			fmt.Fprintf(&b, "| %s | %d |", r.name, n)
			for _, s := range spreads {
				fmt.Fprintf(&b, " %s, %s |", gigabytes(s.sent(r, n)), minutes(s.took(r, n)))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func gigabytes(bytes float64) string {
	if bytes >= 1e12 {
		return fmt.Sprintf("%.1f TB", bytes/1e12)
	}
	return fmt.Sprintf("%.1f GB", bytes/1e9)
}

func minutes(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.1f hours", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// The page and its graph, from the root of the tree.
const (
	pagePath  = "docs/scale.md"
	graphPath = "docs/scale.svg"
)

// The lines of the page between which the table stands.
const tableBegins, tableEnds = "<!-- table -->\n", "<!-- end of the table -->\n"

// withTable puts the table into the page.
func withTable(page string) (string, error) {
	before, rest, ok := strings.Cut(page, tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok || !ok2 {
		return "", fmt.Errorf("%s has no place for the table", pagePath)
	}
	return before + tableBegins + table() + tableEnds + after, nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run() error {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		return err
	}
	text, err := withTable(string(page))
	if err != nil {
		return err
	}
	if err := os.WriteFile(pagePath, []byte(text), 0o644); err != nil {
		return err
	}
	return os.WriteFile(graphPath, []byte(graph()), 0o644)
}
