package cluster_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the table of metrics in docs/operations.md")

// metric is what a page of metrics says of one.
type metric struct {
	name, at, kind, help string
	labels               map[string]bool
}

var (
	metricHelp   = regexp.MustCompile(`^# HELP (\w+) (.*)$`)
	metricType   = regexp.MustCompile(`^# TYPE (\w+) (\w+)$`)
	metricSample = regexp.MustCompile(`^(\w+)\{(.*)\} `)
	sampleLabel  = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

// readMetrics reads a page in the text format of Prometheus.
func readMetrics(at, page string) (list []*metric) {
	var last *metric
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if found := metricHelp.FindStringSubmatch(line); found != nil {
			last = &metric{name: found[1], at: at, help: found[2], labels: map[string]bool{}}
			list = append(list, last)
		} else if found := metricType.FindStringSubmatch(line); found != nil {
			last.kind = found[2]
		} else if found := metricSample.FindStringSubmatch(line); found != nil {
			for _, label := range sampleLabel.FindAllStringSubmatch(found[2], -1) {
				if label[1] != "le" { // a histogram's bucket
					last.labels[label[1]] = true
				}
			}
		}
	}
	return list
}

// unit is a metric's unit, with which its name ends unless it is a number of things.
func (m *metric) unit() string {
	for _, unit := range []string{"seconds", "bytes"} {
		if strings.HasSuffix(strings.TrimSuffix(m.name, "_total"), "_"+unit) {
			return unit
		}
	}
	if strings.HasPrefix(m.help, "1 while ") || strings.HasPrefix(m.help, "1 when ") {
		return "0 or 1"
	}
	return "number"
}

// row is the metric's line in the guide.
func (m *metric) row() string {
	labels := cmp.Or(strings.Join(slices.Sorted(maps.Keys(m.labels)), ", "), "-")
	return fmt.Sprintf("| `%s` | %s | %s, %s | %s | %s |\n", m.name, m.at, m.kind, m.unit(), labels, m.help)
}

// pages are the metrics of an edge and of the writer.
func (f *fixture) pages() (edge, central string) {
	f.t.Helper()
	edge, err := get(f.Edges[0].Metrics, "")
	require.NoError(f.t, err)
	central, err = get(f.WriterURL()+"/metrics", f.OperatorToken)
	require.NoError(f.t, err)
	return edge, central
}

const (
	guide      = "../../docs/operations.md"
	tableBegin = "| metric | at | kind and unit | labels | meaning |\n|---|---|---|---|---|\n"
)

// metricsAreExplained requires that the guide has a row for each metric of an edge and of the writer,
// with what the metric says of itself, and no other row.
func (f *fixture) metricsAreExplained() {
	f.t.Helper()
	edge, central := f.pages()
	var want strings.Builder
	for _, m := range slices.Concat(readMetrics("edge", edge), readMetrics("writer", central)) {
		require.NotEmpty(f.t, m.help, m.name)
		if strings.HasPrefix(m.name, "regedge_") {
			want.WriteString(m.row())
		}
	}
	for _, page := range []string{edge, central} {
		require.Contains(f.t, page, "\ngo_goroutines ")
		require.Contains(f.t, page, "\nprocess_resident_memory_bytes ")
	}
	text, err := os.ReadFile(guide)
	require.NoError(f.t, err)
	before, rest, found := strings.Cut(string(text), tableBegin)
	require.True(f.t, found, "%s has no table of metrics", guide)
	got, after, _ := strings.Cut(rest, "\n\n")
	if *update {
		require.NoError(f.t, os.WriteFile(guide, []byte(before+tableBegin+want.String()+"\n"+after), 0o644))
		return
	}
	require.Equal(f.t, want.String(), got+"\n", "go test ./internal/cluster -run TestEveryEdgeAnswers -update rewrites the table")
}

// TestMetricsAreReadWithTheirLabels: a value may have braces and commas in it.
func TestMetricsAreReadWithTheirLabels(t *testing.T) {
	const page = "# HELP a_total What it counts.\n# TYPE a_total counter\n" +
		`a_total{route="/v1/companies/{cin}",status="200"} 2` + "\n" +
		"# HELP b_seconds 1 while so.\n# TYPE b_seconds histogram\n" + `b_seconds_bucket{le="1"} 2` + "\nb_seconds_sum 3\n"
	list := readMetrics("edge", page)
	require.Len(t, list, 2)
	require.Equal(t, "| `a_total` | edge | counter, number | route, status | What it counts. |\n", list[0].row())
	require.Equal(t, "| `b_seconds` | edge | histogram, seconds | - | 1 while so. |\n", list[1].row())
}
