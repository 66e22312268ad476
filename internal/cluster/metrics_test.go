package cluster_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
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

// page is what a process shows as metrics.
type page struct{ at, text string }

// pages are the metrics of an edge, of the writer and of a primary.
func (f *fixture) pages() []page {
	f.t.Helper()
	edge, err := get(f.Edges[0].Metrics, "")
	require.NoError(f.t, err)
	central, err := get(f.WriterURL()+"/metrics", f.OperatorToken)
	require.NoError(f.t, err)
	return []page{{"edge", edge}, {"writer", central}, {"primary, replica", f.primaryPage()}}
}

// primaryPage starts regedge primary, until the end of the test, unless it runs, and returns its metrics.
func (f *fixture) primaryPage() string {
	f.t.Helper()
	if f.primaryMetrics == "" {
		dir := f.t.TempDir()
		trust, err := pki.Create(dir, time.Now)
		require.NoError(f.t, err)
		cert, key, err := trust.Certificate("primary", "127.0.0.1")
		require.NoError(f.t, err)
		for _, name := range pki.SigningKeys {
			require.NoError(f.t, os.Remove(filepath.Join(dir, name)))
		}
		address := testkit.FreePort(f.t)
		process := &testkit.Process{Program: f.Regedge, Log: f.log, Args: []string{
			"primary", "--sqld", f.Sqld, "--dir", filepath.Join(dir, "data"), "--metrics", address, "--listen", testkit.FreePort(f.t),
			"--replication", testkit.FreePort(f.t), "--jwt-key", trust.PrimaryKeyFile("access"), "--tls-ca", trust.AuthorityFile(),
			"--tls-cert", cert, "--tls-key", key,
		}}
		require.NoError(f.t, process.Start())
		f.t.Cleanup(process.Stop)
		f.primaryMetrics = "http://" + address + "/metrics"
	}
	var text string
	require.Eventually(f.t, func() (ok bool) {
		var err error
		text, err = get(f.primaryMetrics, "")
		return err == nil
	}, patience, 20*time.Millisecond)
	return text
}

// allMetrics are the metrics of all pages, in order.
func allMetrics(pages []page) (list []*metric) {
	for _, p := range pages {
		list = append(list, readMetrics(p.at, p.text)...)
	}
	return list
}

const (
	guide      = "../../docs/operations.md"
	tableBegin = "| metric | at | kind and unit | labels | meaning |\n|---|---|---|---|---|\n"
)

// metricsAreExplained requires that the guide has a row for each metric of each kind of process, with what
// the metric says of itself, and no other row.
func (f *fixture) metricsAreExplained() {
	f.t.Helper()
	pages := f.pages()
	var want strings.Builder
	for _, m := range allMetrics(pages) {
		require.NotEmpty(f.t, m.help, m.name)
		if strings.HasPrefix(m.name, "regedge_") {
			want.WriteString(m.row())
		}
	}
	for _, p := range pages {
		require.Contains(f.t, p.text, "\ngo_goroutines ")
		require.Contains(f.t, p.text, "\nprocess_resident_memory_bytes ")
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
