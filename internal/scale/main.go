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

// The assumptions: what the network and the machines have that nobody measured.
const (
	uplink = 125e6 // of the primary and of a relay, in bytes a second: 1 Gbit/s
	cores  = 8     // of each of these machines
	relays = 10    // edges that feed others
)

// counts are the numbers of edges in the table.
var counts = []int{1, 10, 100, 1000}

// release is what a push costs one edge and the primary, as measured for a registry of all India: 3.66 million companies,
// 5.3 GB, two cores (docs/scale.md).
type release struct {
	name  string
	bytes float64 // sent by the primary to a replica
	alone float64 // seconds until a single edge has all
	busy  float64 // seconds of the primary's processors for each edge
	file  bool    // whether it is a file, which a mirror can send
}

var releases = []release{
	// The bytes are from ten pushes to three edges; the other figures from an edge that comes back after such pushes.
	{"1% of the companies", 74e6, 3.5, 2.7, false},
	// What a new edge costs.
	{"a full release", 2.0e9, 11.7, 3.6, true},
}

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
		func(r release, n int) time.Duration { return feed(r, n) }},
	{"by ten relays", "#1f6feb",
		func(r release, n int) float64 { return r.bytes * float64(min(n, relays)) },
		func(r release, n int) time.Duration {
			if n <= relays {
				return feed(r, n)
			}
			return feed(r, relays) + feed(r, (n-relays+relays-1)/relays)
		}},
	{"by a mirror", "#1a7f37",
		func(r release, n int) float64 {
			if !r.file {
				return r.bytes * float64(n)
			}
			return r.bytes
		},
		func(r release, n int) time.Duration {
			if !r.file {
				return feed(r, n)
			}
			return seconds(r.bytes/uplink) + seconds(r.alone)
		}},
}

// feed is how long one machine takes to send a release to each of n others: the time of one transfer, of its uplink or
// of its processors, whichever is longest.
func feed(r release, n int) time.Duration {
	return seconds(max(r.alone, float64(n)*r.bytes/uplink, float64(n)*r.busy/cores))
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
	if bytes < 0.1e9 {
		return fmt.Sprintf("%.0f MB", bytes/1e6)
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
