package cluster_test

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"regedge/internal/testkit"
)

// alarm is a rule of Prometheus.
type alarm struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// alarms reads deploy/prometheus/alarms.yml.
func alarms(t testing.TB) (list []alarm) {
	t.Helper()
	file, err := os.Open("../../deploy/prometheus/alarms.yml")
	require.NoError(t, err)
	defer file.Close()
	var content struct {
		Groups []struct {
			Name  string
			Rules []alarm
		}
	}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&content))
	for _, group := range content.Groups {
		list = append(list, group.Rules...)
	}
	require.NotEmpty(t, list)
	return list
}

var (
	metricName  = regexp.MustCompile(`regedge_\w+`)
	metricLabel = regexp.MustCompile(`(\w+)=~?"|by \(([\w, ]+)\)`)
)

// TestEveryAlarmIsExplained: docs/operations.md explains each alarm with its severity, and no other.
func TestEveryAlarmIsExplained(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	var named []string
	for _, a := range alarms(t) {
		named = append(named, a.Alert+" "+a.Labels["severity"])
		require.NotEmpty(t, a.For, a.Alert)
		require.Contains(t, []string{"page", "ticket"}, a.Labels["severity"], a.Alert)
		require.NotEmpty(t, a.Annotations["summary"], a.Alert)
	}
	var explained []string
	for _, row := range regexp.MustCompile(`(?m)^\| (Regedge\w+) \| (\w+) \|`).FindAllStringSubmatch(string(guide), -1) {
		explained = append(explained, row[1]+" "+row[2])
	}
	require.ElementsMatch(t, named, explained)
}

// TestAlarmsSayWhatTheyAreAbout: a summary names no label that the alarm's result does not have, which would be an empty
// word in a page at night.
func TestAlarmsSayWhatTheyAreAbout(t *testing.T) {
	tests, err := os.ReadFile("../../deploy/prometheus/alarms_test.yml")
	require.NoError(t, err)
	for _, a := range alarms(t) {
		figures := regexp.MustCompile(`(?s)\n  - name: ` + a.Alert + `(?:,[^\n]*)?\n(.*?)promql_expr_test`).FindString(string(tests))
		require.NotEmpty(t, figures, a.Alert)
		said := regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(a.Annotations["summary"], -1)
		for _, label := range said {
			if kept := regexp.MustCompile(`sum by \(([\w, ]+)\)`).FindStringSubmatch(a.Expr); kept != nil && !strings.Contains(a.Expr, "up{") {
				require.Contains(t, kept[1], label[1], a.Alert)
				continue
			}
			require.Regexp(t, `[{,]`+label[1]+`="`, figures, "%s: no series has a label %s", a.Alert, label[1])
		}
	}
}

// TestAlarmsSayHowMuchAndOfWhich: a summary has a unit beside its value, and names the file, disk, token or database, of
// which an instance has several.
func TestAlarmsSayHowMuchAndOfWhich(t *testing.T) {
	tests, err := os.ReadFile("../../deploy/prometheus/alarms_test.yml")
	require.NoError(t, err)
	for _, a := range alarms(t) {
		said := a.Annotations["summary"]
		if strings.Contains(said, "$value") {
			switch {
			case strings.Contains(a.Expr, "_bytes / "):
				require.Contains(t, said, "{{ $value | humanizePercentage }}", a.Alert)
			case strings.Contains(a.Expr, "_seconds"):
				require.Regexp(t, `\{\{ \$value \| humanizeDuration \}\}|\{\{ \$value \}\} s\b`, said, a.Alert)
			}
		}
		if strings.Contains(a.Expr, "sum by") {
			continue
		}
		figures := regexp.MustCompile(`(?s)\n  - name: ` + a.Alert + `(?:,[^\n]*)?\n(.*?)promql_expr_test`).FindString(string(tests))
		for _, label := range []string{"directory", "file", "token", "database"} {
			if strings.Contains(figures, label+`="`) && !strings.Contains(a.Expr, label+"=") {
				require.Contains(t, said, "$labels."+label, a.Alert)
			}
		}
	}
}

// TestAlarmsFireWhenTheyShould runs the unit tests of the alarms, of which each alarm has one in which it
// fires and one in which it is quiet.
func TestAlarmsFireWhenTheyShould(t *testing.T) {
	tests, err := os.ReadFile("../../deploy/prometheus/alarms_test.yml")
	require.NoError(t, err)
	for _, a := range alarms(t) {
		for _, named := range []string{`(?m)^  - name: ` + a.Alert + `(,.*)?$`, `(?m)^  - name: ` + a.Alert + ` is quiet`} {
			require.Regexp(t, named, string(tests))
		}
	}
	promtool, err := exec.LookPath(cmp.Or(os.Getenv("PROMTOOL"), "promtool"))
	if err != nil {
		testkit.MissingTool(t, "promtool is not installed: run make tools, and set PROMTOOL to build/bin/promtool")
	}
	for _, args := range [][]string{{"check", "rules", "alarms.yml"}, {"test", "rules", "alarms_test.yml"}} {
		command := exec.Command(promtool, args...)
		command.Dir = "../../deploy/prometheus"
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// alarmsUseMetrics requires that every metric in an alarm exists, with the labels that the alarm
// uses. Those of Litestream are looked at where it runs, in TestStandbyTakesOver.
func (f *fixture) alarmsUseMetrics() {
	f.t.Helper()
	var all strings.Builder
	for _, p := range f.pages() {
		all.WriteString(p.text)
	}
	for _, a := range alarms(f.t) {
		if strings.Contains(a.Expr, "litestream_") {
			continue
		}
		names := metricName.FindAllString(a.Expr, -1)
		for _, name := range names {
			require.Regexp(f.t, `(?m)^`+name+`[ {]`, all.String(), a.Alert)
		}
		for _, found := range metricLabel.FindAllStringSubmatch(a.Expr, -1) {
			for label := range strings.FieldsFuncSeq(found[1]+","+found[2], func(r rune) bool { return r == ',' || r == ' ' }) {
				if label != "instance" && label != "job" { // which Prometheus adds
					require.NotEmpty(f.t, names, a.Alert)
					require.Regexp(f.t, `(?m)^`+names[0]+`\{[^}]*\b`+label+`="`, all.String(), a.Alert)
				}
			}
		}
	}
}
