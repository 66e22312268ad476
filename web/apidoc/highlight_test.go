package apidoc

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSONIsColouredByWhatItIs(t *testing.T) {
	require.Equal(t,
		`{<span class="k">&#34;a&lt;&#34;</span>: [<span class="s">&#34;b&#34;</span>, <span class="n">-1.5</span>, <span class="n">null</span>]}`,
		string(Highlight(`{"a<": ["b", -1.5, null]}`)))
}

var ownTag = regexp.MustCompile(`<span class="[ksn]">|</span>`)

func FuzzHighlight(f *testing.F) {
	for _, text := range []string{`{"a": "b\\\""}`, `"<script>alert(1)</script>"`, `"open`, `</span>`, `&amp; 'x' "y":`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		marked := string(Highlight(text))
		plain := ownTag.ReplaceAllString(marked, "")
		require.NotContains(t, plain, "<", "only our own tags are in it")
		require.Equal(t, strings.ReplaceAll(text, "\x00", "\uFFFD"), html.UnescapeString(plain))
	})
}
