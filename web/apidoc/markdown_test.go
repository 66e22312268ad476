package apidoc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarkdownIsConverted(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"One `a<b`\nparagraph.":             "<p>One <code>a&lt;b</code>\nparagraph.</p>\n",
		"**Bold.** One.\n\nTwo & 3.":        "<p><strong>Bold.</strong> One.</p>\n<p>Two &amp; 3.</p>\n",
		"- one\n  more\n- `two`":            "<ul><li>one\n  more</li><li><code>two</code></li></ul>\n",
		"| A | B |\n|---|---|\n| 1 | `2` |": `<div class="scroll" tabindex="0" role="region" aria-label="A"><table><tr><th scope="col">A</th><th scope="col">B</th></tr>` + "\n<tr><td>1</td><td><code>2</code></td></tr>\n</table></div>\n",
		"a * b, 2 ** 3, `open":              "<p>a * b, 2 ** 3, `open</p>\n",
	} {
		require.Equal(t, want, string(markdown(text)), text)
	}
	require.Equal(t, "alone", string(brief("alone\n")))
	require.Equal(t, "<p>one</p>\n<p>two</p>", string(brief("one\n\ntwo")))
}
