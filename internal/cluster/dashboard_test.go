package cluster_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// grafanaDashboard is what the tests read of deploy/grafana/regedge.json.
type grafanaDashboard struct {
	Title, UID, Timezone, Refresh string
	SchemaVersion                 int
	Time                          struct{ From, To string }
	Templating                    struct {
		List []struct{ Name, Type, Label string }
	}
	Panels []struct {
		ID          int
		Title, Type string
		Description string
		GridPos     struct{ H, W, X, Y int }
		Datasource  struct{ UID string }
		FieldConfig struct{ Defaults struct{ Unit string } }
		Targets     []struct {
			Expr, LegendFormat, RefID string
			Datasource                struct{ UID string }
		}
	}
}

func readDashboard(t testing.TB) (d grafanaDashboard) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/grafana/regedge.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.Greater(t, len(d.Panels), 20)
	return d
}

// queryLabel are the labels that a query groups or selects by.
var (
	queryLabel     = regexp.MustCompile(`(\w+)(?:=~|=|!=)"`)
	groupedBy      = regexp.MustCompile(`by \(([\w, ]+)\)`)
	legendLabel    = regexp.MustCompile(`\{\{(\w+)\}\}`)
	histogramParts = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// dashboardUsesMetrics requires that every metric that the dashboard of Grafana shows exists, with the
// labels that its queries and legends use.
func (f *fixture) dashboardUsesMetrics() {
	f.t.Helper()
	known := map[string]*metric{}
	for _, m := range allMetrics(f.pages()) {
		known[m.name] = m
	}
	for _, panel := range readDashboard(f.t).Panels {
		for _, target := range panel.Targets {
			labels := map[string]bool{"instance": true, "job": true, "le": true} // Prometheus adds the first two
			names := regexp.MustCompile(`(?:regedge|process|go)_\w+`).FindAllString(target.Expr, -1)
			require.NotEmpty(f.t, names, "%s: %s", panel.Title, target.Expr)
			for _, name := range names {
				m := known[name]
				if m == nil {
					m = known[histogramParts.ReplaceAllString(name, "")]
				}
				require.NotNil(f.t, m, "%s: no metric is called %s", panel.Title, name)
				for label := range m.labels {
					labels[label] = true
				}
			}
			used := queryLabel.FindAllStringSubmatch(target.Expr, -1)
			used = append(used, legendLabel.FindAllStringSubmatch(target.LegendFormat, -1)...)
			for _, found := range groupedBy.FindAllStringSubmatch(target.Expr, -1) {
				for _, label := range strings.Split(found[1], ",") {
					used = append(used, []string{"", strings.TrimSpace(label)})
				}
			}
			for _, label := range used {
				require.True(f.t, labels[label[1]], "%s: %s has no label %s", panel.Title, names, label[1])
			}
		}
	}
}

// TestTheDashboardIsDrawnWithoutOverlaps also requires a title and an explanation of each panel.
func TestTheDashboardIsDrawnWithoutOverlaps(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range readDashboard(t).Panels {
		require.NotEmpty(t, p.Title)
		require.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		if p.Type != "row" {
			require.NotEmpty(t, p.Description, p.Title)
			require.NotEmpty(t, p.Targets, p.Title)
		}
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[cell], "%s lies over another panel", p.Title)
				taken[cell] = p.Title
			}
		}
	}
}

// TestTheDashboardShowsWhatItsUnitsSay: counters as rates, quantiles over the buckets of a histogram, and times and
// bytes in their units; and each line of a panel can be told from the others.
func TestTheDashboardShowsWhatItsUnitsSay(t *testing.T) {
	counter := regexp.MustCompile(`(\w+_(?:total|bucket))(?:\{[^}]*\})?`)
	text, err := os.ReadFile("../../deploy/grafana/regedge.json")
	require.NoError(t, err)
	choice := regexp.MustCompile(`"label_values\((\w+), (\w+)\)"`).FindStringSubmatch(string(text))
	require.NotNil(t, choice)
	require.Contains(t, string(text), `"expr": "`+choice[1]+`{`+choice[2]+`=~`, "the edges to choose from are those of a metric that is shown")
	for _, p := range readDashboard(t).Panels {
		lines := map[string]bool{}
		for _, target := range p.Targets {
			require.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
			require.False(t, lines[target.RefID] || lines[target.LegendFormat+target.Expr], "%s: %s", p.Title, target.Expr)
			lines[target.RefID], lines[target.LegendFormat+target.Expr] = true, true
			if len(p.Targets) > 1 {
				require.False(t, lines[target.LegendFormat], "%s: two lines are called %s", p.Title, target.LegendFormat)
			}
			lines[target.LegendFormat] = true
			for _, found := range counter.FindAllString(target.Expr, -1) {
				require.Contains(t, target.Expr, "rate("+found+"[$__rate_interval])", "%s: a counter", p.Title)
			}
			require.NotRegexp(t, `\b(?:max|min|avg)\b[^(]*(?:\([^(]*\) *)?\(rate\(`, target.Expr, "%s: rates add up", p.Title)
			if strings.Contains(target.Expr, "histogram_quantile(") {
				require.Regexp(t, `by \([^)]*\ble\b.*\(rate\(\w+_bucket\b`, target.Expr, p.Title)
				quantile, named := strings.CutPrefix(target.LegendFormat, "p")
				require.Equal(t, len(p.Targets) > 1, named, "%s: %s", p.Title, target.Expr)
				if named {
					require.Contains(t, target.Expr, "histogram_quantile(0."+strings.Trim(strings.ReplaceAll(quantile, ".", ""), "0")+",", p.Title)
				}
			}
			unit := p.FieldConfig.Defaults.Unit
			switch of := histogramParts.ReplaceAllString(regexp.MustCompile(`(?:regedge|process)_\w+`).FindString(target.Expr), ""); {
			case strings.Contains(target.Expr, " / "):
				require.Equal(t, "percentunit", unit, p.Title)
			case strings.HasSuffix(of, "_bytes_total"):
				require.Equal(t, "Bps", unit, p.Title)
			case strings.HasSuffix(of, "_bytes"):
				require.Equal(t, "bytes", unit, p.Title)
			case strings.HasSuffix(of, "_seconds") && unit != "s": // beside what has another unit
				require.Contains(t, target.LegendFormat, "seconds", p.Title)
			}
		}
	}
}

// TestLinesOfTheDashboardShowWhatTheyAreCalled: no two lines of a panel show the same, and a line that is called after its
// metric is of that metric.
func TestLinesOfTheDashboardShowWhatTheyAreCalled(t *testing.T) {
	text, err := os.ReadFile("../../deploy/grafana/regedge.json")
	require.NoError(t, err)
	require.Contains(t, string(text), `"allValue": ".*"`, "all edges are those of any name")
	kind := regexp.MustCompile(`regedge_(?:verdicts|replication)_([a-z]+)(?:_bytes)?_total`)
	for _, p := range readDashboard(t).Panels {
		shown := map[string]string{}
		for _, target := range p.Targets {
			require.Empty(t, shown[target.Expr], "%s: %s shows the same", p.Title, target.LegendFormat)
			shown[target.Expr] = target.LegendFormat
			if named := kind.FindStringSubmatch(target.Expr); named != nil {
				require.Contains(t, target.LegendFormat, named[1], p.Title)
			}
			if whole, ratio := strings.CutPrefix(target.Expr, "regedge_disk_free_bytes / "); ratio || strings.Contains(target.Expr, " / ") {
				require.Equal(t, "regedge_disk_size_bytes", whole, "%s: what is free, as a share", p.Title)
			}
			if strings.HasSuffix(p.Title, "answered lookups") {
				require.Contains(t, target.Expr, `outcome="answered"`, target.LegendFormat)
			}
		}
	}
}

// TestPanelsShowTheEdgesThatAreChosen: a panel of what only edges have takes the chosen edges, and no other panel depends on
// the choice. Tokens of all nodes end.
func TestPanelsShowTheEdgesThatAreChosen(t *testing.T) {
	ofEdges := map[string]bool{}
	for name, m := range documentedMetrics(t) {
		ofEdges[name] = m.at == "edge"
	}
	shown := 0
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			require.Equal(t, strings.Count(target.Expr, "$edge"), strings.Count(target.Expr, `{instance=~"$edge"`), "%s: %s", p.Title, target.Expr)
			for _, found := range regexp.MustCompile(`(regedge_\w+)(\{instance=)?`).FindAllStringSubmatch(target.Expr, -1) {
				if ofEdges[histogramParts.ReplaceAllString(found[1], "")] && p.Title != "Tokens end" {
					shown++
					require.NotEmpty(t, found[2], "%s: %s is of all edges", p.Title, found[1])
				}
			}
		}
	}
	require.Greater(t, shown, 20)
}

// documentedMetric is where a metric is, and its labels, by the table of docs/operations.md.
type documentedMetric struct {
	at     string
	labels []string
}

func documentedMetrics(t *testing.T) map[string]documentedMetric {
	t.Helper()
	guide, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	metrics := map[string]documentedMetric{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(regedge_\\w+)` \\| ([^|]+) \\| [^|]+ \\| ([^|]+) \\|").FindAllStringSubmatch(string(guide), -1) {
		m := metrics[row[1]]
		m.at = strings.TrimPrefix(m.at+", "+row[2], ", ")
		if row[3] != "-" {
			m.labels = strings.Split(row[3], ", ")
		}
		metrics[row[1]] = m
	}
	require.Greater(t, len(metrics), 60)
	return metrics
}

// TestEachLineOfTheDashboardCanBeTold from those beside it: it has the names of all that its query is divided by, or that its
// metric is.
func TestEachLineOfTheDashboardCanBeTold(t *testing.T) {
	metrics := documentedMetrics(t)
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			divided := groupedBy.FindAllStringSubmatch(target.Expr, -1)
			if !regexp.MustCompile(`\b(?:sum|count)\b`).MatchString(target.Expr) {
				for _, label := range metrics[regexp.MustCompile(`regedge_\w+`).FindString(target.Expr)].labels {
					require.Contains(t, target.LegendFormat, "{{"+label+"}}", "%s: %s", p.Title, target.Expr)
				}
			}
			if regexp.MustCompile(`\bcount\b`).MatchString(target.Expr) {
				require.NotEmpty(t, divided, "%s: how many of each", p.Title)
			}
			for _, labels := range divided {
				for label := range strings.SplitSeq(labels[1], ", ") {
					if label != "le" {
						require.Contains(t, target.LegendFormat, "{{"+label+"}}", "%s: %s", p.Title, target.Expr)
					}
				}
			}
			for _, label := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				require.True(t, len(divided) == 0 || strings.Contains(divided[0][1], label[1]), "%s: %s has no %s", p.Title, target.Expr, label[1])
			}
			if strings.Contains(target.Expr, "process_") {
				require.Equal(t, "{{instance}}", target.LegendFormat, p.Title)
			}
			if summed := strings.Contains(target.Expr, "sum(") || len(divided) > 0; strings.Contains(target.Expr, `instance=~"$edge"`) && !summed {
				require.Contains(t, target.LegendFormat, "{{instance}}", "%s: %s", p.Title, target.Expr)
			}
			if p.Type == "timeseries" {
				require.NotEmpty(t, target.LegendFormat, p.Title)
			}
		}
	}
}

// TestTheDashboardOpensOnTheLastHours of what runs now, in UTC, as logs and alarms have it, and goes on by itself.
func TestTheDashboardOpensOnTheLastHours(t *testing.T) {
	d := readDashboard(t)
	require.Equal(t, "regedge", d.Title)
	require.Equal(t, "regedge", d.UID, "its address stays when it is loaded anew")
	require.GreaterOrEqual(t, d.SchemaVersion, 36, "the first that knows data sources by an object")
	require.Regexp(t, `^now-\d+h$`, d.Time.From)
	require.Equal(t, "now", d.Time.To)
	require.Equal(t, "utc", d.Timezone)
	require.Regexp(t, `^[1-6]0s$`, d.Refresh)
	require.Len(t, d.Templating.List, 2)
	require.Equal(t, []string{"datasource", "query"}, []string{d.Templating.List[0].Type, d.Templating.List[1].Type})
	for i, name := range []string{"datasource", "edge"} {
		require.Equal(t, name, d.Templating.List[i].Name)
		require.NotEmpty(t, d.Templating.List[i].Label)
	}
}
