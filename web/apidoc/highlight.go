package apidoc

import (
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

// token matches the parts of JSON that are coloured: names, strings, and other scalars.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(\s*:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?\b`)

// Highlight marks up JSON for the style sheet, and escapes it.
func Highlight(text string) template.HTML {
	var b strings.Builder
	rest := 0
	for _, at := range token.FindAllStringSubmatchIndex(text, -1) {
		class, end := "n", at[1]
		switch {
		case at[2] >= 0:
			class, end = "k", at[2]
		case text[at[0]] == '"':
			class = "s"
		}
		b.WriteString(template.HTMLEscapeString(text[rest:at[0]]))
		fmt.Fprintf(&b, `<span class="%s">%s</span>`, class, template.HTMLEscapeString(text[at[0]:end]))
		rest = end
	}
	b.WriteString(template.HTMLEscapeString(text[rest:]))
	return template.HTML(b.String())
}
