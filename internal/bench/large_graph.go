package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// drawGraph measures the other sizes and draws the graph, with -graph.
func (b *largeBench) drawGraph(ctx context.Context) error {
	if b.graph == "" {
		return nil
	}
	for _, companies := range graphSizes {
		if companies == b.small.companies || companies >= b.large.companies {
			continue
		}
		r := b.registry(companies)
		if err := b.ready(ctx, r); err != nil {
			return err
		}
		p, err := b.measurePoint(ctx, r, b.rounds)
		if err != nil {
			return err
		}
		b.points = append(b.points, p)
	}
	slices.SortFunc(b.points, func(a, b point) int { return cmp.Compare(a.names, b.names) })
	for _, p := range b.points {
		b.row(fmt.Sprintf("%d names over HTTP, one connection", p.names), "", "lookup %s; search %s", p.lookup, p.search)
	}
	return os.WriteFile(b.graph, []byte(graphOf(b.points)), 0o644)
}

// The graph's size and margins, in SVG units.
const (
	graphWidth, graphHeight = 720, 420
	graphLeft, graphRight   = 70, 150
	graphTop, graphBottom   = 40, 60
)

// graphOf draws the latencies over the number of names, on logarithmic scales.
func graphOf(points []point) string {
	lines := []struct {
		name, color, dash string
		of                func(point) time.Duration
	}{
		{"lookup p50", "#1f6feb", "", func(p point) time.Duration { return p.lookup.p50 }},
		{"lookup p99", "#1f6feb", "5 4", func(p point) time.Duration { return p.lookup.p99 }},
		{"search p50", "#bc4c00", "", func(p point) time.Duration { return p.search.p50 }},
		{"search p99", "#bc4c00", "5 4", func(p point) time.Duration { return p.search.p99 }},
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">`+"\n", graphWidth, graphHeight)
	fmt.Fprintf(&b, "<title>Latency of lookup and search by the size of the registry</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", graphWidth, graphHeight)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15">Latency over HTTP, one connection, by companies and LLPs in the registry</text>`+"\n", graphLeft)
	drawAxes(&b, points)
	for n, line := range lines {
		var path []string
		for _, p := range points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", across(float64(p.names)), down(line.of(p))))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", strings.Join(path, " "), line.color, line.dash)
		y := graphTop + 20 + 22*n
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`,
			graphWidth-graphRight+14, y, graphWidth-graphRight+44, y, line.color, line.dash)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", graphWidth-graphRight+50, y+4, line.name)
	}
	return b.String() + "</svg>\n"
}

// The ends of the scales.
const (
	fewestNames, mostNames = 9_000, 4_500_000
	leastMicros, mostMicro = 30, 30_000
)

func across(names float64) float64 {
	share := math.Log(names/fewestNames) / math.Log(mostNames/fewestNames)
	return graphLeft + share*(graphWidth-graphLeft-graphRight)
}

func down(length time.Duration) float64 {
	share := math.Log(length.Seconds()*1e6/leastMicros) / math.Log(mostMicro/leastMicros)
	return graphHeight - graphBottom - share*(graphHeight-graphTop-graphBottom)
}

func drawAxes(b *strings.Builder, points []point) {
	for _, micros := range []int{30, 100, 300, 1000, 3000, 10_000, 30_000} {
		y := down(time.Duration(micros) * time.Microsecond)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#d0d7de"/>`, graphLeft, y, graphWidth-graphRight, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", graphLeft-8, y+4, millis(micros))
	}
	for _, p := range points {
		x := across(float64(p.names))
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#d0d7de"/>`, x, graphTop, x, graphHeight-graphBottom)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, graphHeight-graphBottom+20, rounded(p.names))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">names in the registry</text>`+"\n", (graphLeft+graphWidth-graphRight)/2, graphHeight-14)
}

func millis(micros int) string {
	if micros < 1000 {
		return fmt.Sprintf("%.2f ms", float64(micros)/1000)
	}
	return fmt.Sprintf("%d ms", micros/1000)
}

func rounded(names int) string {
	if names >= 950_000 {
		return fmt.Sprintf("%.1f M", float64(names)/1e6)
	}
	return fmt.Sprintf("%d,000", (names+500)/1000)
}
