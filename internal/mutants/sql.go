package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

// sqlWord matches texts that are taken for SQL, which alone is changed.
var sqlWord = regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|AND|ORDER BY|VALUES)\b`)

// replacements maps a word or operator of SQL to others that mean nearly the same.
var replacements = []struct {
	kind string
	from *regexp.Regexp // its first group is replaced
	to   string
}{
	{"SQL_ORDER", regexp.MustCompile(`( DESC)\b`), ""},
	{"SQL_ORDER", regexp.MustCompile(`( ORDER BY [\w., ]+?)(?: LIMIT|[^\w., ]|$)`), ""},
	{"SQL_BOUNDARY", regexp.MustCompile(`[^<>-](<=) `), "<"},
	{"SQL_BOUNDARY", regexp.MustCompile(`[^<>-](>=) `), ">"},
	{"SQL_BOUNDARY", regexp.MustCompile(` (<) `), "<="},
	{"SQL_BOUNDARY", regexp.MustCompile(` (>) `), ">="},
	{"SQL_NEGATION", regexp.MustCompile(`IS( NOT) NULL`), ""},
	{"SQL_NEGATION", regexp.MustCompile(`IS() NULL`), " NOT"},
	{"SQL_NEGATION", regexp.MustCompile(`\b(NOT )(?:IN|EXISTS)\b`), ""},
	{"SQL_NEGATION", regexp.MustCompile(`WHERE ()EXISTS\b`), "NOT "},
	{"SQL_ARITHMETIC", regexp.MustCompile(` (\+) `), "-"},
	{"SQL_ARITHMETIC", regexp.MustCompile(` (-) `), "+"},
	{"SQL_FUNCTION", regexp.MustCompile(`\b(max)\(`), "min"},
	{"SQL_FUNCTION", regexp.MustCompile(`\b(min)\(`), "max"},
	{"SQL_FUNCTION", regexp.MustCompile(`\b(sum)\(`), "max"},
	{"SQL_FUNCTION", regexp.MustCompile(`\b(DISTINCT )`), ""},
	{"SQL_FUNCTION", regexp.MustCompile(`\bUNION( ALL)`), ""},
	{"SQL_JOIN", regexp.MustCompile(`\b(LEFT )JOIN`), ""},
	{"SQL_CONFLICT", regexp.MustCompile(`\bOR (IGNORE)\b`), "REPLACE"},
	{"SQL_CONFLICT", regexp.MustCompile(`\bOR (REPLACE)\b`), "IGNORE"},
}

// sqlChange is a mistake in a text: the bytes from from to to are replaced.
type sqlChange struct {
	kind     string
	from, to int
	by       string
}

// sqlChanges lists the mistakes that can be made in the SQL of a text: a word or sign that is another, and a
// condition or a new value that is left out.
func sqlChanges(text string) (list []sqlChange) {
	if !sqlWord.MatchString(text) {
		return nil
	}
	for _, r := range replacements {
		for _, at := range r.from.FindAllStringSubmatchIndex(text, -1) {
			list = append(list, sqlChange{r.kind, at[2], at[3], r.to})
		}
	}
	for _, at := range conjunction.FindAllStringIndex(text, -1) {
		if strings.HasSuffix(text[:at[0]], "INSERT") { // OR IGNORE
			continue
		}
		if clause := text[:at[0]]; strings.LastIndex(clause, "BETWEEN") <= strings.LastIndex(clause, "AND") {
			list = append(list, sqlChange{"SQL_CONDITION", at[0], at[1] + clauseLength(text[at[1]:]), ""})
		}
	}
	for _, at := range first.FindAllStringIndex(text, -1) {
		n := clauseLength(text[at[1]:])
		if rest := text[at[1]+n:]; conjunction.MatchString(rest[:min(len(rest), 6)]) && !strings.Contains(text[at[1]:at[1]+n], "BETWEEN") {
			end := at[1] + n + conjunction.FindStringIndex(rest)[1]
			list = append(list, sqlChange{"SQL_CONDITION", at[1], end, ""})
		}
	}
	return list
}

var (
	conjunction = regexp.MustCompile(`\s+(AND|OR)\s+`)
	first       = regexp.MustCompile(`\b(WHERE|HAVING)\s+`)
	clauseEnd   = regexp.MustCompile(`^\s+(AND|OR|ORDER|GROUP|LIMIT|RETURNING|ON|HAVING|UNION|WHERE|JOIN|LEFT)\b`)
)

// clauseLength is the length of a condition: up to the next clause, or the bracket that closes around it.
func clauseLength(text string) int {
	depth := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return i
			}
		case depth == 0 && (c == ';' || clauseEnd.MatchString(text[i:])):
			return i
		}
	}
	return len(text)
}

// sql adds the mistakes in a text of the program.
func (f *file) sql(n *ast.BasicLit) {
	if n.Kind != token.STRING {
		return
	}
	text := f.raw(n)
	for _, c := range sqlChanges(text[1 : len(text)-1]) { // within the quotes
		c.from, c.to = c.from+1, c.to+1
		m := f.add(c.kind, n.Pos())
		m.col += c.from
		m.text = strings.Join(strings.Fields(text[max(0, c.from-30):c.from]+"⟦"+text[c.from:c.to]+"⟧"+c.by+text[c.to:min(len(text), c.to+20)]), " ")
		m.around(f, n, fmt.Sprintf("mutantSQL(%d, %s, ", m.id, text[:c.from]+c.by+text[c.to:]), ")")
	}
}

// variables turns constants of type string into variables, since a function's result can't be a constant.
func (f *file) variables() (edits []edit) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		d, ok := n.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			return true
		}
		for _, s := range d.Specs {
			for _, value := range s.(*ast.ValueSpec).Values {
				b, ok := f.info.Types[value].Type.Underlying().(*types.Basic)
				if !ok || b.Info()&types.IsString == 0 {
					return true
				}
			}
		}
		edits = append(edits, edit{offset: f.at(d.TokPos), cut: len("const"), text: "var"})
		return true
	})
	return edits
}
