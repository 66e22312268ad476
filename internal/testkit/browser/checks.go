package browser

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// violation is a finding of axe: a rule and the elements that violate it.
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

// RequireAccessible checks the page as it is now with all rules of axe.
func (p *Tab) RequireAccessible(axe, where string) {
	p.T.Helper()
	if p.Eval(`typeof axe`) == "undefined" {
		_, err := chromedp.Run(p, chromedp.Evaluate[bool](axe+"; true"))
		require.NoError(p.T, err)
	}
	var found []violation
	require.NoError(p.T, json.Unmarshal([]byte(p.Eval(`axe.run(document, {resultTypes: ["violations"]})
		.then((result) => JSON.stringify(result.violations))`)), &found))
	for _, v := range found {
		p.T.Errorf("%s: %s", where, v)
	}
}

// axePath is where make tools installs axe, relative to the module's root.
const axePath = "host/reference/tools/node_modules/axe-core/axe.min.js"

// Axe returns the script of axe. The test is skipped if it is not installed.
func Axe(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if script, err := os.ReadFile(filepath.Join(dir, axePath)); err == nil {
			return string(script)
		}
	}
	testkit.MissingTool(t, "axe is not installed: run npm ci --ignore-scripts in host/reference/tools")
	return ""
}

var screens = flag.String("screens", "", "directory into which screenshots of every page are written, for people to look at")

// WantScreens reports whether -screens was given.
func WantScreens() bool { return *screens != "" }

// NeedScreens skips a test without -screens.
func NeedScreens(t *testing.T) {
	t.Helper()
	if *screens == "" {
		t.Skip("no screenshots asked for: -screens DIR takes them")
	}
	require.NoError(t, os.MkdirAll(*screens, 0o755))
}

// RequireUnderscores checks that a text field shows underscores: an underscore must not look like a
// space. While a page is still being drawn, the same text may look different each time; then it retries.
func (p *Tab) RequireUnderscores(field string) {
	p.T.Helper()
	picture := func(value string) []byte {
		p.Eval(fmt.Sprintf(`(f => { f.value = %q; f.scrollIntoView({ block: "center" }); return "" })(document.querySelector(%q))`, value, field))
		png, err := chromedp.Run(p, chromedp.Screenshot(field))
		require.NoError(p.T, err)
		return png
	}
	for range 20 {
		space, underscore, spaceAgain := picture("a b"), picture("a_b"), picture("a b")
		if bytes.Equal(space, spaceAgain) {
			require.False(p.T, bytes.Equal(space, underscore), "%s shows no underscores", field)
			return
		}
	}
	require.Fail(p.T, "the same text never looks the same", field)
}

// RequireWholePlaceholders checks that every placeholder fits into its field, also in a part of the page that
// is folded: a field does not scroll before something is typed into it.
func (p *Tab) RequireWholePlaceholders(where string) {
	p.T.Helper()
	require.Empty(p.T, p.Eval(`(() => {
		const folded = [...document.querySelectorAll("details:not([open])")];
		folded.forEach(part => part.open = true);
		const cut = [...document.querySelectorAll("input[placeholder]")].filter(field => field.checkVisibility()).flatMap(field => {
			const style = getComputedStyle(field), text = document.createElement("span");
			text.textContent = field.placeholder;
			text.style.cssText = "position: absolute; white-space: pre";
			text.style.font = style.font;
			document.body.append(text);
			const needs = text.getBoundingClientRect().width;
			text.remove();
			const has = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
			return needs <= has ? [] : [field.placeholder + ": " + Math.ceil(needs) + " in " + has];
		});
		folded.forEach(part => part.open = false);
		return cut.join("; ");
	})()`), where)
}

// maxPicture is the height in pixels up to which Chromium takes a picture.
const maxPicture = 16_000

// Picture takes a screenshot of the whole page, or of its beginning. Nothing is compared.
func (p *Tab) Picture(name string, v View) {
	p.T.Helper()
	take := chromedp.FullScreenshot(100)
	if p.Eval("String(document.documentElement.scrollHeight > "+strconv.Itoa(maxPicture)+")") == "true" {
		take = chromedp.CaptureScreenshot()
	}
	png, err := chromedp.Run(p, take)
	require.NoError(p.T, err)
	require.NoError(p.T, os.WriteFile(filepath.Join(*screens, name+"-"+v.Name+".png"), png, 0o644))
}
