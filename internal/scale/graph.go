package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The size of the graph and its margins, in SVG units, and the ends of its logarithmic scales.
const (
	width, height = 720, 400
	left, right   = 80, 190
	top, bottom   = 40, 50

	mostEdges              = 1000
	leastTime, longestTime = 30 * time.Second, 24 * time.Hour
)

// graph draws the time until all edges have a release over the number of edges: whole lines for a full
// release, dashed ones for 1%.
func graph() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">`+"\n", width, height)
	fmt.Fprintf(&b, "<title>Time until all edges have a release, by their number</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15">Time until all edges have a release (model)</text>`+"\n", left)
	axes(&b)
	line := 0
	for _, s := range spreads {
		for n, r := range releases {
			dash := []string{"5 4", ""}[n]
			fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", points(s, r), s.color, dash)
			y := top + 16 + 24*line
			fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`, width-right+8, y, width-right+34, y, s.color, dash)
			fmt.Fprintf(&b, `<text x="%d" y="%d">%s, %s</text>`+"\n", width-right+40, y+4, s.name, []string{"1%", "full"}[n])
			line++
		}
	}
	return b.String() + "</svg>\n"
}

// points are the corners of a line: twenty for each power of ten.
func points(s spread, r release) string {
	var list []string
	for step := 0.0; step <= 60; step++ {
		n := int(math.Round(math.Pow(10, step/20)))
		list = append(list, fmt.Sprintf("%.1f,%.1f", across(n), down(s.took(r, n))))
	}
	return strings.Join(list, " ")
}

func axes(b *strings.Builder) {
	for _, n := range counts {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#d0d7de"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n",
			across(n), top, across(n), height-bottom, across(n), height-bottom+18, n)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">edges</text>`+"\n", (left+width-right)/2, height-10)
	for _, t := range []struct {
		at   time.Duration
		name string
	}{{time.Minute, "1 minute"}, {10 * time.Minute, "10 minutes"}, {time.Hour, "1 hour"}, {10 * time.Hour, "10 hours"}} {
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#d0d7de"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, down(t.at), width-right, down(t.at), left-6, down(t.at)+4, t.name)
	}
}

func across(n int) float64 {
	return left + math.Log(float64(n))/math.Log(mostEdges)*(width-left-right)
}

func down(t time.Duration) float64 {
	share := math.Log(t.Seconds()/leastTime.Seconds()) / math.Log(longestTime.Seconds()/leastTime.Seconds())
	return height - bottom - share*(height-top-bottom)
}
