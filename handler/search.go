package handler

import (
	"unicode/utf8"

	"regedge/handler/names"
)

// bestNames finds the names that match best; schema/migrations/registry has the
// tables and docs/search.md the way it goes. With what follows it is one statement, which
// returns one row: the release, and the matches as a JSON array in order.
//
// Where the query is long enough and few names hold the rarest runs of its characters, these
// names are all that three of the tiers need (held). Otherwise each tier lists at most ?9
// names, and none when those before it have as many. Its candidates hold the rarest terms
// of the tier. They come from the index in the order of the search, so that the first ones
// whose text agrees are the best ones; past maxCandidates of them a tier gives up.
//
//	?1 the query   ?2 without its spaces   ?3 its last word
//	?4 its other words, as a JSON array
//	?5 … ?8 the terms of each tier, as JSON arrays   ?9 the limit
//
// A bare ?9 as a limit would have SQLite plan the statement anew whenever it is bound. What is
// only counted and joined together is read where it lies: a table for it costs more.
const bestNames = `
WITH
near (place) AS MATERIALIZED (
  SELECT place
  FROM (` + candidates + `?8` + rarestTwo + `)
  LIMIT iif(length(?2) >= ` + wholeRunes + `, ` + fewNames + `, 0)),
few (yes) AS NOT MATERIALIZED (
  SELECT count(*) < ` + fewNames + ` AND length(?2) >= ` + wholeRunes + ` FROM near),
held (tier, place) AS MATERIALIZED (
  SELECT iif(substr(n.name, 1, length(?1)) = ?1, 1, iif(instr(n.name, ' ' || ?1) > 0, 2, 4)), n.place
  FROM near
  CROSS JOIN search_name n ON n.place = near.place
  WHERE instr(replace(n.name, ' ', ''), ?2) > 0
  LIMIT iif((SELECT yes FROM few), ` + fewNames + `, 0)),
start (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?5` + rarestThree + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE substr(n.name, 1, length(?1)) = ?1
  LIMIT iif((SELECT yes FROM few), 0, ?9)),
phrase (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?6` + rarestThree + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE instr(n.name, ' ' || ?1) > 0 AND substr(n.name, 1, length(?1)) <> ?1
  LIMIT iif((SELECT yes FROM few), 0, ?9 - (SELECT count(*) FROM start))),
ordered (tier, place) AS NOT MATERIALIZED (
  SELECT tier, place FROM held WHERE tier < 4 UNION ALL
  SELECT 1, place FROM start UNION ALL
  SELECT 2, place FROM phrase),
words (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?7` + rarestThree + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE instr(' ' || n.name, ' ' || ?3) > 0 AND instr(' ' || n.name, ' ' || ?1) = 0
    AND NOT EXISTS (SELECT 1 FROM json_each(?4) w WHERE instr(' ' || n.name || ' ', ' ' || w.value || ' ') = 0)
  LIMIT max(0, ?9 - (SELECT count(*) FROM ordered))),
found (tier, place) AS NOT MATERIALIZED (
  SELECT tier, place FROM ordered UNION ALL
  SELECT 3, place FROM words),
inside (place) AS MATERIALIZED (
  SELECT n.place
  FROM (` + candidates + `?8` + rarestTwo + `) c
  CROSS JOIN search_name n ON n.place = c.place
  WHERE instr(replace(n.name, ' ', ''), ?2) > 0 AND n.place NOT IN (SELECT place FROM found)
  LIMIT iif((SELECT yes FROM few), 0, ?9 - (SELECT count(*) FROM found))),
best (tier, place) AS (
  SELECT tier, place FROM found UNION ALL
  SELECT 4, place FROM inside UNION ALL
  SELECT 4, place FROM held WHERE tier = 4 AND place NOT IN (SELECT place FROM words)
  ORDER BY tier, place
  LIMIT ?9 + 0),
labelled (tier, place, value, label, type) AS (`

// searchStatement and olderStatement are a search, in an index of this program or of one
// before, which has no labels. The first says whether it met such a one, with NULL in place of
// its labels; without the column it fails.
const (
	searchStatement = bestNames + `
  SELECT b.tier, b.place, n.value, iif(n.label = '', upper(n.name), coalesce(n.label,
    (SELECT company_name FROM company WHERE cin = n.value), (SELECT llp_name FROM llp WHERE llpin = n.value))),
    iif(length(n.value) = 21, 'company', 'llp')
  FROM best b
  CROSS JOIN search_name n ON n.place = b.place)` + listNames + `,
  (SELECT label IS NULL FROM search_name WHERE place = (SELECT min(place) FROM search_name))`
	listNames = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT json_group_array(json_object('value', value, 'label', label, 'type', type))
    FROM (SELECT * FROM labelled ORDER BY tier, place LIMIT ?9 + 0))`
)

// olderStatement is put together when it is needed, out of the statement that begins as it does:
// what a component holds is put back after each request.
func olderStatement() string {
	return searchStatement[:len(bestNames)] + `
  SELECT b.tier, b.place, n.value, coalesce(company.company_name, llp.llp_name), iif(company.cin IS NULL, 'llp', 'company')
  FROM best b
  CROSS JOIN search_name n ON n.place = b.place
  LEFT JOIN company ON company.cin = n.value
  LEFT JOIN llp ON llp.llpin = n.value)` + listNames
}

// candidates, before a list of terms, and one of the others after it read the places of the
// names that hold the rarest of them, for comparing the text of the few names that have
// those is cheaper than asking for more. A term that search_common does not have is rare,
// and where there is one, those that are not are left out. Two runs of characters say
// enough; words are common, and three of them may be needed.
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

// maxCandidates bounds the names that one tier compares, so that no query reads the
// whole table: 2,000 are a few milliseconds.
const maxCandidates = "2000"

// What few names hold: fewNames is how many of them are looked at for three tiers at once,
// and wholeRunes from how many characters of a query on that is tried, for shorter ones
// seldom have so few.
const (
	fewNames   = "100"
	wholeRunes = "8"
)

// prefixOnlyRunes is the length up to which a query finds only names that start with it.
const prefixOnlyRunes = 2

// searchArgs are the parameters of a search for a name of 1 to 200 characters and
// a limit of 1 to 10.
func searchArgs(index names.Index, name string, limit int) []Value {
	query := names.Query(name)
	start, phrase, words, inside := index.StartTerms(query), names.NoTerms, names.NoTerms, names.NoTerms
	if utf8.RuneCountInString(name) > prefixOnlyRunes && utf8.RuneCountInString(query) > prefixOnlyRunes {
		phrase, words, inside = index.PhraseTerms(query), index.WordsTerms(query), index.InsideTerms(query)
	}
	before, last := names.CutLast(query)
	return []Value{
		text(query), text(names.Squeeze(query)), text(last), text(before),
		text(start), text(phrase), text(words), text(inside),
		{Kind: Integer, Int: int64(limit)},
	}
}
