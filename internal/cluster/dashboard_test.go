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
	Title  string
	Panels []struct {
		ID          int
		Title, Type string
		Description string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct{ Expr, LegendFormat string }
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
