package apidoc

import (
	"html/template"
	"regexp"
	"strings"
)

// markdown converts what our documents use of CommonMark: paragraphs, lists of lines that begin with
// "- ", tables, `code` and **bold**. Everything else stays as it is, escaped.
func markdown(text string) template.HTML {
	var b strings.Builder
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		switch {
		case lines[0] == "":
		case strings.HasPrefix(lines[0], "|"):
			writeTable(&b, lines)
		case strings.HasPrefix(lines[0], "- "):
			writeList(&b, block)
		default:
			b.WriteString("<p>" + inline(block) + "</p>\n")
		}
	}
	return template.HTML(b.String())
}

// brief is markdown without the element of a paragraph that is alone.
func brief(text string) template.HTML {
	converted := strings.TrimSpace(string(markdown(text)))
	inner, ok := strings.CutPrefix(converted, "<p>")
	if ok && strings.Index(inner, "</p>") == len(inner)-len("</p>") {
		converted = strings.TrimSuffix(inner, "</p>")
	}
	return template.HTML(converted)
}

var marks = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*")

// inline converts the text of a paragraph or a cell.
func inline(text string) string {
	return marks.ReplaceAllStringFunc(template.HTMLEscapeString(strings.TrimSpace(text)), func(match string) string {
		if code, ok := strings.CutPrefix(match, "`"); ok {
			return "<code>" + strings.TrimSuffix(code, "`") + "</code>"
		}
		return "<strong>" + strings.Trim(match, "*") + "</strong>"
	})
}

func writeList(b *strings.Builder, block string) {
	b.WriteString("<ul>")
	for _, item := range strings.Split("\n"+strings.TrimSpace(block), "\n- ")[1:] {
		b.WriteString("<li>" + inline(item) + "</li>")
	}
	b.WriteString("</ul>\n")
}

// writeTable converts a table whose second line divides head and body.
func writeTable(b *strings.Builder, lines []string) {
	b.WriteString(`<div class="scroll" tabindex="0" role="region" aria-label="` + template.HTMLEscapeString(strings.TrimSpace(cells(lines[0])[0])) + `"><table>`)
	for i, line := range lines {
		if i == 1 {
			continue
		}
		b.WriteString("<tr>")
		for _, cell := range cells(line) {
			if i == 0 {
				b.WriteString(`<th scope="col">` + inline(cell) + "</th>")
			} else {
				b.WriteString("<td>" + inline(cell) + "</td>")
			}
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
}

func cells(line string) []string { return strings.Split(strings.Trim(line, "| "), "|") }
