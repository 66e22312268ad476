package web_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// colours are those that a block of the style sheet names.
func colours(block string) map[string]string {
	named := map[string]string{}
	for _, c := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(block, -1) {
		named[c[1]] = c[2]
	}
	return named
}

// luminance is the relative luminance of a colour (WCAG 2.2).
func luminance(t *testing.T, colour string) (sum float64) {
	t.Helper()
	for i, weight := range []float64{.2126, .7152, .0722} {
		part, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err, colour)
		share := float64(part) / 255
		if share <= .04045 {
			sum += weight * share / 12.92
		} else {
			sum += weight * math.Pow((share+.055)/1.055, 2.4)
		}
	}
	return sum
}

// TestTextCanBeReadInBothThemes: each colour of text on each that it lies on has a contrast of 4.5 to 1, and a line of a field
// or of the focus one of 3 to 1 (WCAG 2.2, 1.4.3 and 1.4.11).
func TestTextCanBeReadInBothThemes(t *testing.T) {
	content, err := os.ReadFile("style.css")
	require.NoError(t, err)
	light, rest, ok := strings.Cut(string(content), "@media (prefers-color-scheme: dark) {")
	require.True(t, ok)
	dark, _, ok := strings.Cut(rest, "\n}\n")
	require.True(t, ok)
	first := colours(light)
	require.Greater(t, len(first), 14)
	for theme, named := range map[string]map[string]string{"light": first, "dark": colours(dark)} {
		require.Len(t, named, len(first), "%s: each colour has its own", theme)
		contrast := func(text, under string) float64 {
			require.Contains(t, named, text, theme)
			require.Contains(t, named, under, theme)
			a, b := luminance(t, named[text]), luminance(t, named[under])
			return (max(a, b) + .05) / (min(a, b) + .05)
		}
		for _, under := range []string{"paper", "card", "sunk", "tint"} {
			for _, text := range []string{"ink", "soft", "accent", "accent-deep", "good", "warn", "bad"} {
				require.GreaterOrEqual(t, contrast(text, under), 4.5, "%s: %s on %s", theme, text, under)
			}
		}
		for _, text := range []string{"code-key", "code-text", "code-number"} {
			require.GreaterOrEqual(t, contrast(text, "sunk"), 4.5, "%s: %s", theme, text)
		}
		for _, under := range []string{"accent", "accent-deep"} {
			require.GreaterOrEqual(t, contrast("on-accent", under), 4.5, "%s: a button", theme)
		}
	}
}

// TestTheFocusIsSeenAndWhatIsHiddenIsNot, whatever other rules say of the same elements.
func TestTheFocusIsSeenAndWhatIsHiddenIsNot(t *testing.T) {
	for _, file := range []string{"style.css", "apidoc/reference.css"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotRegexp(t, `outline(-width|-style)?: *(0|none)`, string(content), file)
		require.NotRegexp(t, `user-scalable|touch-action: none|pointer-events: none`, string(content), file)
		require.Equal(t, strings.Count(string(content), "{"), strings.Count(string(content), "}"), "%s: a brace that is not closed takes the rest with it", file)
		for _, size := range regexp.MustCompile(`font(?:-size)?:[^;}]*?(\d*\.\d+|\d+)(rem|em|px)`).FindAllStringSubmatch(string(content), -1) {
			least := map[string]float64{"rem": .7, "em": .7, "px": 11}[size[2]]
			n, err := strconv.ParseFloat(size[1], 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, least, "%s: %s", file, size[0])
		}
	}
	content, err := os.ReadFile("style.css")
	require.NoError(t, err)
	for _, rule := range []string{
		"[hidden] { display: none !important; }",
		":focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px; }",
		".skip:focus { top: 0; color: var(--on-accent); }",
		".hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }",
	} {
		require.Contains(t, string(content), "\n"+rule+"\n")
	}
}
