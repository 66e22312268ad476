package handler

import (
	"strings"
	"unicode/utf8"

	"regedge/handler/charge"
	"regedge/handler/names"
)

// HeaderSearchSuggestion has the registered names that an empty search may have meant
// (docs/contract.md, "Suggestions").
const HeaderSearchSuggestion = "Search-Suggestion"

// forgivingStatement runs when searchStatement found nothing. It returns one row: the release; the matches of the last
// tier, as searchStatement returns them; and, if there are none, the names to compare for suggestions: forms and labels
// in turn, with the record separator between them.
//
//	?1 the terms of the last tier   ?2 the words to be found anywhere, as a JSON array
//	?3 those that begin a word      ?4 the limit
//	?5 the terms of names like the query   ?6 how many names each of them may give
//	?7 what the best of the matches begin with, spaces and "and" ignored
//
// Matches that begin with ?7 come first, then those in which more words of ?2 begin a word.
//
// docs/search.md, "Suggestions", has the method.
const forgivingStatement = `
WITH
forgiven (place, odd) AS MATERIALIZED (
  SELECT n.place, iif(substr(replace(replace(n.name, ' and ', ' '), ' ', ''), 1, length(?7)) = ?7, -1,
    (SELECT count(*) FROM json_each(?2) w WHERE instr(' ' || n.name, ' ' || w.value) = 0)) AS odd
  FROM (` + candidates + `?1` + byRarity + `3))
    ORDER BY rowid LIMIT min(` + maxCandidates + `, ` + maxCompared + ` / max(1, json_array_length(?2) + json_array_length(?3)))) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE NOT EXISTS (SELECT 1 FROM json_each(?2) w WHERE instr(replace(n.name, ' ', ''), w.value) = 0)
    AND NOT EXISTS (SELECT 1 FROM json_each(?3) w
      WHERE instr(' ' || n.name, ' ' || w.value) = 0 AND instr(' ' || replace(n.name, ' and ', ''), ' ' || w.value) = 0)
  ORDER BY odd, n.place
  LIMIT ?4 + 0),
near (place) AS MATERIALIZED (
  SELECT DISTINCT p.value
  FROM json_each(?5) t
  CROSS JOIN json_each((SELECT json_group_array(rowid) FROM (
    SELECT rowid FROM search_index WHERE search_index MATCH t.value
    ORDER BY rowid LIMIT iif(EXISTS (SELECT 1 FROM forgiven), 0, ?6 + 0)))) p)
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT json_group_array(json_object('value', value, 'label', iif(label = '', upper(name), label),
      'type', iif(length(value) = 21, 'company', 'llp')))
    FROM (
      SELECT n.value AS value, n.name AS name, n.label AS label
      FROM forgiven f
      CROSS JOIN search_name n ON n.place = f.place
      ORDER BY f.odd, f.place)),
  (SELECT group_concat(name || char(30) || label, char(30))
    FROM (
      SELECT n.name AS name, iif(n.label = '', upper(n.name), replace(n.label, char(30), ' ')) AS label
      FROM near c
      CROSS JOIN search_name n ON n.place = c.place
      ORDER BY c.place))`

// maxCompared bounds how many comparisons of a word with a name the last tier makes, beside maxCandidates names. One
// takes about 1 µs: 40 words of four characters in 2,000 names took 0.1 s (30 November 2026).
const maxCompared = "12000"

// nearNames is about how many names are compared for each reading of a query to suggest some; each takes about 2 µs in the component. Every
// expression may give an equal share of them, so that one with many names does not crowd out the others.
const nearNames = 240

// forgivingArgs are the parameters of forgivingStatement.
func forgivingArgs(query string, limit int) []Value {
	f := names.Forgive(query)
	like, expressions := names.LikeTerms(query)
	return []Value{
		text(f.Terms), text(f.Inside), text(f.Begins), {Kind: Integer, Int: int64(limit)},
		text(like), {Kind: Integer, Int: int64(nearNames / max(1, expressions))},
		text(f.Start),
	}
}

// If none of the first names is like the query, at most furtherNames of each further expression are compared, and at most
// allFurtherNames of a statement's: for a query that a scanner misread it has some twenty.
const (
	furtherNames    = 60
	allFurtherNames = 2 * nearNames
)

// furtherArgs are the parameters of forgivingStatement that select names to compare, and no matches.
func furtherArgs(terms string, count int) []Value {
	none := text(names.NoTerms)
	each := min(furtherNames, allFurtherNames/count)
	return []Value{none, none, none, {Kind: Integer}, text(terms), {Kind: Integer, Int: int64(each)}, text("")}
}

// forgive searches once more for a name that was not found as it was typed, first with its bars read as letters. An empty answer may have
// suggestions: those for the name as typed come before those for the other reading.
func (c *call) forgive(name string, limit int) answer {
	read, misread := names.BarsAsLetters(name), ""
	if read != name {
		if a := c.forgiveAs(read, limit); a.outcome != charge.NotFound {
			return a
		}
		misread, c.suggestions = c.suggestions, ""
	}
	a := c.forgiveAs(name, limit)
	if a.outcome == charge.NotFound && c.suggestions == "" {
		c.suggestions = misread
	}
	return a
}

func (c *call) forgiveAs(name string, limit int) answer {
	query := names.Query(name)
	if utf8.RuneCountInString(name) <= prefixOnlyRunes || utf8.RuneCountInString(query) <= prefixOnlyRunes {
		return nothing()
	}
	row, failure := c.read(forgivingStatement, forgivingArgs(query, limit)...)
	if row == nil {
		return failure
	}
	if row[0].Text != "[]" {
		return found([]byte(row[0].Text))
	}
	like := names.NewSuggestions(query)
	labels := alike(like, row[1].Text)
	if like.Unsure() {
		for _, further := range [...]func() (string, int){like.FurtherTerms, like.MisreadTerms} {
			terms, count := further()
			if count == 0 {
				continue
			}
			if row, failure = c.read(forgivingStatement, furtherArgs(terms, count)...); row == nil {
				return failure
			}
			labels = alike(like, row[1].Text)
		}
	}
	if acronym, ok := names.AcronymOf(query); ok && isSpelledOut(name, acronym, labels) {
		if row, failure = c.read(acronymStatement, text(acronym.Terms), text(acronym.Pattern)); row == nil {
			return failure
		}
		labels = spelledOut(acronym, row[0].Text, labels)
	}
	c.suggestions = headerList(labels)
	return nothing()
}

// nothing is the answer of a search without a match.
func nothing() answer { return answer{outcome: charge.NotFound, data: []byte("[]")} }

// maxSuggestion bounds a suggested name in the header, in bytes, so that the header stays small.
const maxSuggestion = 500

// alike adds the names of lines, forms and labels in turn as forgivingStatement returns them, to those compared so far,
// and returns the names that are most like the query.
func alike(s *names.Suggestions, lines string) []string {
	for lines != "" {
		var name, label string
		name, label, lines = cutName(lines)
		s.Add(name, label)
	}
	return s.Labels()
}

// cutName cuts a form and its label off the front of lines.
func cutName(lines string) (name, label, rest string) {
	name, lines, _ = strings.Cut(lines, "\x1e")
	label, rest, _ = strings.Cut(lines, "\x1e")
	return name, label, rest
}

// headerList returns names as the value of the header.
func headerList(labels []string) string {
	var value []byte
	for _, label := range labels {
		before := len(value)
		if before > 0 {
			value = append(value, ", "...)
		}
		start := len(value)
		if value = appendHeaderString(value, label); len(value)-start > maxSuggestion {
			value = value[:before]
		}
	}
	return string(value)
}

// appendHeaderString appends text as a string of a structured field (RFC 9651, section 3.3.3). Percent signs and what
// such a string can't hold are percent-encoded.
func appendHeaderString(dst []byte, text string) []byte {
	const digits = "0123456789ABCDEF"
	dst = append(dst, '"')
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < ' ' || b > '~' || b == '%':
			dst = append(dst, '%', digits[b>>4], digits[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
