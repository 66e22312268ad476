package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// violation is what axe finds: a rule, and the elements that break it.
type violation struct {
	ID    string
	Help  string
	Nodes []struct {
		HTML           string
		FailureSummary string
	}
}

func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.ID, v.Help)
	for i, node := range v.Nodes {
		if i == 4 {
			fmt.Fprintf(&b, "\n  and %d more", len(v.Nodes)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %.200s\n    %s", node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", " "))
	}
	return b.String()
}

// RequireAccessible runs every rule of axe on what the page shows now.
func (p *Tab) RequireAccessible(axe, where string) {
	p.T.Helper()
	_, err := chromedp.Run(p, chromedp.Evaluate[bool](axe+"; true"))
	require.NoError(p.T, err)
	var found []violation
	require.NoError(p.T, json.Unmarshal([]byte(p.Eval(`axe.run(document, {resultTypes: ["violations"]})
		.then((result) => JSON.stringify(result.violations))`)), &found))
	for _, v := range found {
		p.T.Errorf("%s: %s", where, v)
	}
}

// axePath is where make tools puts axe, in the module's root.
const axePath = "host/reference/tools/node_modules/axe-core/axe.min.js"

// Axe is the script of axe; without it the test is skipped.
func Axe(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if script, err := os.ReadFile(filepath.Join(dir, axePath)); err == nil {
			return string(script)
		}
	}
	t.Skip("axe is not installed: run npm ci --ignore-scripts in host/reference/tools")
	return ""
}
