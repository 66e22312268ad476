package handler

import (
	"strings"
	"unicode/utf8"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/handler/names"
)

const (
	maxNameRunes = 200
	defaultLimit = 5
	maxLimit     = 10
)

func (c *call) searchCompanies() answer {
	name, times, ok := c.queryParam("name")
	switch {
	case times == 0:
		return failed(InvalidQuery, "")
	case times > 1:
		return failed(InvalidQuery, "The parameter name is given more than once. Give it once.")
	case !ok || !utf8.ValidString(name):
		return failed(InvalidQuery, "The parameter name is not percent-encoded UTF-8.")
	}
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n < 1 || n > maxNameRunes {
		return failed(InvalidQuery, "The parameter name has 1 to 200 characters, blanks around it not counted.")
	}
	limit, ok := c.limit()
	if !ok {
		return failed(InvalidQuery, "The parameter limit is an integer from 1 to 10, given at most once.")
	}
	if c.caller.sandbox {
		if made, count := sandboxMatches(name, limit); count > 0 {
			return withMatches(made, c.list(searchStatement, searchArgs(name, limit-count)...))
		}
		if number := numberIn(name); findMadeUp(number) != nil {
			return withMatches(sandboxMatch(number), c.list(searchNumberStatement, text(number)))
		}
	}
	return c.search(name, limit)
}

// search finds the matches of a valid name, or the record whose CIN or LLPIN was given instead of a
// name.
func (c *call) search(name string, limit int) answer {
	matches := c.list(searchStatement, searchArgs(name, limit)...)
	if matches.outcome != charge.NotFound {
		return matches
	}
	if number := numberIn(name); number != "" {
		if matches = c.list(searchNumberStatement, text(number)); matches.outcome != charge.NotFound {
			return matches
		}
	}
	if like, some := c.likeNumber(name); some {
		return like
	}
	return c.forgive(name, limit)
}

// limit reads the number of matches that the client wants.
func (c *call) limit() (int, bool) {
	value, times, ok := c.queryParam("limit")
	if times == 0 {
		return defaultLimit, true
	}
	if !ok || times > 1 {
		return 0, false
	}
	if value = strings.TrimSpace(value); value == "10" {
		return maxLimit, true
	}
	if len(value) != 1 || value[0] < '1' || value[0] > '9' {
		return 0, false
	}
	return int(value[0] - '0'), true
}

func (c *call) searchLLPs() answer {
	value, times, _ := c.queryParam("llpin")
	llpin, ok := ident.LLPIN(value)
	if times != 1 || !ok {
		return failed(InvalidLLPIN, "")
	}
	answer := c.list(searchLLPStatement, text(llpin))
	if c.caller.sandbox {
		return withMatches(sandboxMatch(llpin), answer)
	}
	return answer
}

// list runs the statement of a search, whose first column after the release is the array of
// matches as JSON.
func (c *call) list(statement string, args ...Value) answer {
	row, failure := c.read(statement, args...)
	if row == nil {
		return failure
	}
	if row[0].Text == "[]" {
		return nothing()
	}
	return found([]byte(row[0].Text))
}

// searchLLPStatement finds the LLP with exactly the LLPIN ?1.
const searchLLPStatement = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT json_group_array(json_object('value', llpin, 'label', llp_name, 'type', 'llp'))
    FROM llp WHERE llpin = ?1)`

// searchStatement finds the names that match best. It returns one row: the release, and the
// matches in order as a JSON array. schema/migrations/registry has the tables;
// docs/search.md, "The index", explains the method.
//
// If the query is long enough and few names have the rarest runs of its characters, the search
// needs to look only at these names for all tiers but words (held). Otherwise each tier
// lists at most ?9 names, and none once the tiers before it have found as many. Its candidates
// are the names with the rarest terms of the tier. They come from the index in search order,
// so the first ones whose text matches are the best ones; a tier looks at no more than
// maxCandidates.
//
//	?1 the query   ?2 without its spaces   ?3 its last word
//	?4 its other words, as a JSON array
//	?5 … ?8 the terms of start, phrase, words and inside, as JSON arrays
//	?9 the limit   ?10, ?11 the terms of exact and whole
//
// "?9 + 0" and not "?9", since SQLite would prepare the statement again whenever a bare limit
// is bound. Sets that are only counted or concatenated are not materialized: a temporary
// table costs more than reading them twice.
const searchStatement = `
WITH
near (place) AS MATERIALIZED (
  SELECT place
  FROM (` + candidates + `?8` + rarestTwo + `)
  LIMIT iif(length(?2) >= ` + wholeRunes + `, ` + fewNames + `, 0)),
few (yes) AS NOT MATERIALIZED (
  SELECT count(*) < ` + fewNames + ` AND length(?2) >= ` + wholeRunes + ` FROM near),
held (tier, place) AS MATERIALIZED (
  SELECT CASE WHEN ` + isExact + ` THEN 1 WHEN ` + isWhole + ` THEN 2 WHEN ` + isStart + ` THEN 3
    WHEN instr(n.name, ' ' || ?1) > 0 THEN 4 ELSE 6 END, n.place
  FROM near
  CROSS JOIN search_name n ON n.place = near.place
  WHERE instr(replace(n.name, ' ', ''), ?2) > 0
  LIMIT iif((SELECT yes FROM few), ` + fewNames + `, 0)),
exact (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?10` + rarestTwo + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE ` + isExact + `
  LIMIT iif((SELECT yes FROM few), 0, ?9)),
whole (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?11` + rarestThree + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE ` + isWhole + ` AND NOT ` + isExact + `
  LIMIT iif((SELECT yes FROM few), 0, ?9 - (SELECT count(*) FROM exact))),
start (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?5` + rarestThree + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE ` + isStart + ` AND NOT ` + isWhole + ` AND NOT ` + isExact + `
  LIMIT iif((SELECT yes FROM few), 0, ?9 - (SELECT count(*) FROM exact) - (SELECT count(*) FROM whole))),
starts (tier, place) AS NOT MATERIALIZED (
  SELECT 1, place FROM exact UNION ALL
  SELECT 2, place FROM whole UNION ALL
  SELECT 3, place FROM start),
phrase (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?6` + rarestThree + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE instr(n.name, ' ' || ?1) > 0 AND substr(n.name, 1, length(?1)) <> ?1
  LIMIT iif((SELECT yes FROM few), 0, ?9 - (SELECT count(*) FROM starts))),
ordered (tier, place) AS NOT MATERIALIZED (
  SELECT tier, place FROM held WHERE tier < 6 UNION ALL
  SELECT tier, place FROM starts UNION ALL
  SELECT 4, place FROM phrase),
words (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?7` + rarestThree + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE instr(' ' || n.name, ' ' || ?3) > 0 AND instr(' ' || n.name, ' ' || ?1) = 0
    AND NOT EXISTS (SELECT 1 FROM json_each(?4) w WHERE instr(' ' || n.name || ' ', ' ' || w.value || ' ') = 0)
  LIMIT max(0, ?9 - (SELECT count(*) FROM ordered))),
found (tier, place) AS NOT MATERIALIZED (
  SELECT tier, place FROM ordered UNION ALL
  SELECT 5, place FROM words),
inside (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?8` + rarestTwo + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE instr(replace(n.name, ' ', ''), ?2) > 0 AND n.place NOT IN (SELECT place FROM found)
  LIMIT iif((SELECT yes FROM few), 0, ?9 - (SELECT count(*) FROM found))),
best (tier, place) AS (
  SELECT tier, place FROM found UNION ALL
  SELECT 6, place FROM inside UNION ALL
  SELECT 6, place FROM held WHERE tier = 6 AND place NOT IN (SELECT place FROM words)
  ORDER BY tier, place
  LIMIT ?9 + 0)
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT json_group_array(json_object('value', value, 'label', iif(label = '', upper(name), label),
      'type', iif(length(value) = 21, 'company', 'llp')))
    FROM (
      SELECT n.value AS value, n.name AS name, n.label AS label
      FROM best b
      CROSS JOIN search_name n ON n.place = b.place
      ORDER BY b.tier, b.place
      LIMIT ?9 + 0))`

// The tests of a name n for the first tiers; each excludes those before it.
const (
	isExact = `(n.name = ?1 OR n.name IN (?1 || ' private limited', ?1 || ' limited', ?1 || ' llp', ?1 || ' opc private limited'))`
	isWhole = `(substr(n.name, 1, length(?1) + 1) = ?1 || ' ')`
	isStart = `(substr(n.name, 1, length(?1)) = ?1)`
)

// A tier's candidates are read by candidates, the parameter with its terms, and rarestTwo or
// rarestThree. Only the rarest terms are looked up in the index: to compare the text of the
// few names that have them is cheaper than to intersect more lists. A term without a row in
// search_common is rare, and if there is a rare one, the common ones are left out. Two runs of
// characters select enough; words are more common, and three of them may be needed.
const (
	candidates = `
    SELECT rowid AS place FROM search_index WHERE search_index MATCH (
      SELECT coalesce(group_concat('(' || term || ')', ' AND ') FILTER (WHERE names IS NULL),
        group_concat('(' || term || ')', ' AND '), '""')
      FROM (SELECT j.value AS term, iif(instr(j.value, ' OR '), 1 << 40, s.names) AS names FROM json_each(`
	rarestTwo   = byRarity + `2` + inOrder
	rarestThree = byRarity + `3` + inOrder
	byRarity    = `) j
        LEFT JOIN search_common s ON s.term = j.value
        ORDER BY names LIMIT `
	inOrder = `))
    ORDER BY rowid LIMIT ` + maxCandidates
)

// maxCandidates bounds the names that one tier compares, so that no query reads the whole
// table: 2,000 take a few milliseconds.
const maxCandidates = "2000"

// fewNames is how many names are looked at for three tiers at once. This is tried for queries
// of at least wholeRunes characters: shorter ones seldom have so few candidates.
const (
	fewNames   = "100"
	wholeRunes = "8"
)

// prefixOnlyRunes is the length up to which a query finds only names that start with it.
const prefixOnlyRunes = 2

// searchArgs are the parameters of searchStatement for a name of 1 to 200 characters and a
// limit of 1 to 10.
func searchArgs(name string, limit int) []Value {
	query := names.Query(name)
	start, phrase, words, inside := names.StartTerms(query), names.NoTerms, names.NoTerms, names.NoTerms
	if utf8.RuneCountInString(name) > prefixOnlyRunes && utf8.RuneCountInString(query) > prefixOnlyRunes {
		phrase, words, inside = names.PhraseTerms(query), names.WordsTerms(query), names.InsideTerms(query)
	}
	before, last := names.CutLast(query)
	return []Value{
		text(query), text(names.Squeeze(query)), text(last), text(before),
		text(start), text(phrase), text(words), text(inside),
		{Kind: Integer, Int: int64(limit)},
		text(names.ExactTerms(query)), text(names.WholeTerms(query)),
	}
}
