package handler

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/names"
	"regedge/internal/testkit/searchtest"
	"regedge/schema/search"
)

// searcher runs searches on a database of names.
type searcher struct {
	conn      *sqlite3.Conn
	store     Store
	reference reference
}

const firstRelease = `
INSERT INTO release (seq, id, released_at, companies, llps, directors, appointments, partners)
VALUES (1, 'first', 0, 0, 0, 0, 0, 0)`

func newSearcher(t testing.TB, records []searchtest.Record) *searcher {
	t.Helper()
	if len(records) == 0 {
		t.Skip("../shared/data is not there")
	}
	c := searchtest.Open(t)
	searchtest.Put(t, c, records...)
	_, err := search.Refresh(c)
	require.NoError(t, err)
	require.NoError(t, c.Exec(firstRelease))
	return &searcher{c, prepared{
		searchStatement:       searchtest.Prepare(t, c, searchStatement),
		searchNumberStatement: searchtest.Prepare(t, c, searchNumberStatement),
		likeNumberStatement:   searchtest.Prepare(t, c, likeNumberStatement),
		forgivingStatement:    searchtest.Prepare(t, c, forgivingStatement),
		acronymStatement:      searchtest.Prepare(t, c, acronymStatement),
		beginNumberStatement:  searchtest.Prepare(t, c, beginNumberStatement),
		endNumberStatement:    searchtest.Prepare(t, c, endNumberStatement),
	}, newReference(records)}
}

// prepared are the statements of a search on a connection.
type prepared map[string]*sqlite3.Stmt

func (p prepared) Query(statement string, args []Value) (*Result, error) {
	s := p[statement]
	var failed error
	for i, v := range args {
		if v.Kind == Integer {
			failed = errors.Join(failed, s.BindInt64(i+1, v.Int))
		} else {
			failed = errors.Join(failed, s.BindText(i+1, v.Text))
		}
	}
	defer s.Reset()
	result := &Result{Columns: s.ColumnCount()}
	for s.Step() {
		for i := range result.Columns {
			result.Values = append(result.Values, text(s.ColumnText(i)))
		}
	}
	return result, errors.Join(failed, s.Err())
}

// search runs a search.
func (s *searcher) search(t testing.TB, name string, limit int) (found, suggestions string) {
	t.Helper()
	c := call{Handler: &Handler{Registry: s.store}}
	a := c.search(name, limit)
	require.NoError(t, c.cause, "%q", name)
	require.Empty(t, a.problem.code)
	require.Equal(t, "first", c.release)
	return string(a.data), c.suggestions
}

// find returns the matches of a search as JSON.
func (s *searcher) find(t testing.TB, name string, limit int) string {
	t.Helper()
	found, _ := s.search(t, name, limit)
	return found
}

func (s *searcher) matches(t testing.TB, name string, limit int) []match {
	t.Helper()
	list := []match{}
	require.NoError(t, json.Unmarshal([]byte(s.find(t, name, limit)), &list))
	return list
}

// agree compares a search with the reference.
func (s *searcher) agree(t *testing.T, name string, limit int) {
	t.Helper()
	require.Equal(t, s.reference.find(name, limit), s.matches(t, name, limit), "%q, limit %d", name, limit)
}

// TestANameIsFoundOnce, though it has the words of the query twice: one by one, and in a row within others.
func TestANameIsFoundOnce(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U10000GJ2000PTC000001", Name: "BIGSTEEL RODS ROD STEEL LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000002", Name: "MIDSTEEL RODS LIMITED", Status: "ACTIVE"},
	})
	s.agree(t, "steel rod", 5)
	require.Len(t, s.matches(t, "steel rod", 5), 2)
}

// TestANameThatBeginsWithTheQueryIsFoundOnce, though another of its words does so too.
func TestANameThatBeginsWithTheQueryIsFoundOnce(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U10000GJ2000PTC000001", Name: "TATA AND TATA LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000002", Name: "OLD TATA LIMITED", Status: "ACTIVE"},
	})
	for _, query := range []string{"tata", "ta", "tat"} {
		s.agree(t, query, 5)
	}
	require.Len(t, s.matches(t, "tata", 5), 2)
}

// TestOneWordOfANameMayBeTwoOfTheQuery, if the last of these begins it too.
func TestOneWordOfANameMayBeTwoOfTheQuery(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{{Value: "U10000GJ2000PTC000001", Name: "TEA GARDENS LIMITED", Status: "ACTIVE"}})
	s.agree(t, "tea te", 5)
	require.Len(t, s.matches(t, "tea te", 5), 1)
}

// oddQueries are queries that are not names, as people and programs send them.
var oddQueries = []string{
	"a", "s", "9", "ab", "a b", "a.b", "é", "&", "& co", "%", "%%%", "_", "*", "\"", "\"\"\"", "'", "''';--", "\\", "(", ")", "^tat",
	"limited", "private", "private limited", "pvt ltd", "limited private", "ltd", "llp", "lim", "li", "mited", "rivat", "privated",
	"privatelimited", "private limited private limited", "te lim", "a private limited", "india", "the", "and", "a and b",
	"AND", "OR", "NOT", "NEAR(a b)", "tata AND steel", "name:tata", "-tata", "tata*", "\"tata", "{terms}: tata", "a OR b",
	"$", "=private", ".pri", "te_li", "^t", "\x00", "tata\x00steel", "tata\x00", "😀", "😀😀😀", "भारत", "भारत स्टील लिमिटेड",
	"\u200b\u200b\u200b", "ＴＡＴＡ", "ÀÉÎ", "…", "‘’", "a\u0301b\u0301c\u0301", "m/s", "M/S.", "M/s tata",
	strings.Repeat("a", 200), strings.Repeat("a ", 100), strings.Repeat("ab ", 66), strings.Repeat("limited ", 25),
	strings.Repeat("privatelimited", 14), strings.Repeat("भ", 200), strings.Repeat("%", 200), strings.Repeat("\"", 200),
	strings.Repeat("private limited india ", 9), strings.Repeat("&", 200),
}

func TestSearchAgreesWithItsDefinition(t *testing.T) {
	s := newSearcher(t, searchtest.Sample(t))
	for _, q := range oddQueries {
		for _, limit := range []int{1, 5, 10} {
			s.agree(t, q, limit)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range searchtest.Sample(t) {
		s.agree(t, r.Name, 5)
		for range 4 {
			s.agree(t, vary(random, r.Name), 1+random.IntN(10))
		}
	}
}

func TestSearchAgreesWithItsDefinitionOnRealNames(t *testing.T) {
	records := searchtest.Real(t)
	s := newSearcher(t, records)
	for _, q := range oddQueries {
		s.agree(t, q, 10)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 250 {
		q := vary(random, records[random.IntN(len(records))].Name)
		first, _, _ := strings.Cut(names.Query(q), " ")
		if first == "private" || first == "limited" {
			continue // nearly every name has it: a tier does not compare so many candidates
		}
		s.agree(t, q, 1+random.IntN(10))
	}
}

// vary makes a query from a name: a part, other words, another order, other spacing or
// punctuation.
func vary(random *rand.Rand, name string) string {
	words := strings.Fields(name)
	switch random.IntN(11) {
	case 0: // a beginning
		return name[:1+random.IntN(len(name))]
	case 1: // from a word on
		return strings.Join(words[random.IntN(len(words)):], " ")
	case 2: // an inner piece
		from := random.IntN(len(name))
		return name[from : from+random.IntN(len(name)-from+1)]
	case 3: // other order
		random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		return strings.Join(words, " ")
	case 4: // fewer words, the last unfinished
		a, b := words[random.IntN(len(words))], words[random.IntN(len(words))]
		return a + " " + b[:1+random.IntN(len(b))]
	case 5: // joined
		return strings.Join(words, "")
	case 6: // split
		at := random.IntN(len(name))
		return name[:at] + " " + name[at:]
	case 9: // plurals, without an inner word
		return strings.Join(slices.Delete(words, len(words)/2, len(words)/2+1), "S ")
	case 10: // joined, without a word
		return strings.Join(words[:1+len(words)/2], "") + " " + words[len(words)-1]
	case 7: // short forms
		return strings.NewReplacer("PRIVATE", "Pvt.", "LIMITED", "Ltd.", "AND", "&", "COMPANY", "Co.").Replace(name)
	}
	return strings.ToLower(strings.Join(words, "-"))
}

// TestSearchForgives checks typed queries that no name contains as they stand.
func TestSearchForgives(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U10000GJ2000PTC000001", Name: "TOP RANKERS EDUTECH AND MEDIA PRIVATE LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000002", Name: "DEVSQUARE TECH ONLINE SERVICES PRIVATE LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000003", Name: "VETRI FARMERS PRODUCER COMPANY LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000004", Name: "SAMSUN CERAMIC INDIA PRIVATE LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000005", Name: "J AND K BIO-FUEL PRIVATE LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000006", Name: "JK TYRES AND INDUSTRIES LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000007", Name: "SHREE FINANCE LIMITED", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000008", Name: "CARGO BOX PRIVATE LIMITED", Status: "ACTIVE"},
	})
	for query, want := range map[string]string{
		"toprankers media":           "TOP RANKERS EDUTECH AND MEDIA PRIVATE LIMITED",
		"dev square online services": "DEVSQUARE TECH ONLINE SERVICES PRIVATE LIMITED",
		"vetri farmer producer co":   "VETRI FARMERS PRODUCER COMPANY LIMITED",
		"samsun ceramics":            "SAMSUN CERAMIC INDIA PRIVATE LIMITED",
		"samsun ceramics pvt ltd":    "SAMSUN CERAMIC INDIA PRIVATE LIMITED",
		"J K BIO-FUEL":               "J AND K BIO-FUEL PRIVATE LIMITED",
		"j&k tyre industry":          "JK TYRES AND INDUSTRIES LIMITED",
		"shree \ufb01nance":          "SHREE FINANCE LIMITED",
		"cargo boxes":                "CARGO BOX PRIVATE LIMITED",
	} {
		found := s.matches(t, query, 5)
		require.Len(t, found, 1, query)
		require.Equal(t, want, found[0].Label, query)
	}
	require.Empty(t, s.matches(t, "top jk", 5), "short words alone are not looked for inside others")
}

func TestSearchOfShortQueriesFindsBeginningsOnly(t *testing.T) {
	s := newSearcher(t, searchtest.Sample(t))
	for _, q := range []string{"a", "b", "s", "sa", "ka", "1"} {
		for _, m := range s.matches(t, q, 10) {
			require.True(t, strings.HasPrefix(names.Name(m.Label), q), "%q found %q", q, m.Label)
		}
	}
}

func TestSearchWithoutAMatchIsAnEmptyArray(t *testing.T) {
	s := newSearcher(t, searchtest.Sample(t))
	for _, q := range []string{"zzzzqqq", "%", "\x00", "😀"} {
		require.Equal(t, "[]", s.find(t, q, 5), "%q", q)
	}
}

func TestSearchLabelsAreJSON(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U10000GJ2000PTC000001", Name: `QUOTED "NAME" \ PRIVATE LIMITED`, Status: "ACTIVE"},
		{Value: "AAA-0001", Name: `QUOTED "NAME" LLP`, Status: "ACTIVE"},
	})
	require.JSONEq(t, `[
		{"value": "AAA-0001", "label": "QUOTED \"NAME\" LLP", "type": "llp"},
		{"value": "U10000GJ2000PTC000001", "label": "QUOTED \"NAME\" \\ PRIVATE LIMITED", "type": "company"}
	]`, s.find(t, "quoted name", 5))
}

func TestSearchTakesANumberForAName(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U10000GJ2000PTC000001", Name: "ONE PRIVATE LIMITED", Status: "ACTIVE"},
		{Value: "AAA-0001", Name: "TWO LLP", Status: "ACTIVE"},
		{Value: "U10000GJ2000PTC000003", Name: "AAA 0001 FOODS PRIVATE LIMITED", Status: "ACTIVE"},
		{Value: "AAA-0002", Name: "FOUR LLP", Status: "ACTIVE"},
	})
	for query, want := range map[string]string{
		"U10000GJ2000PTC000001": "U10000GJ2000PTC000001", "u10000gj2000ptc000001": "U10000GJ2000PTC000001", "aaa0002": "AAA-0002",
		"aaa-0001": "U10000GJ2000PTC000003", "U10000GJ2000PTC000009": "", "U10000GJ2000PTC00000": "",
	} {
		got := s.matches(t, query, 5)
		if want == "" {
			require.Empty(t, got, query)
			continue
		}
		require.Len(t, got, 1, query)
		require.Equal(t, want, got[0].Value, query)
	}
	for _, statement := range []string{searchNumberStatement, searchLLPStatement, likeNumberStatement, beginNumberStatement, endNumberStatement} {
		require.Zero(t, s.indexReads(t, statement))
	}
}

// TestSearchReadsByIndex checks the query plan: tables are searched by key and the index of terms
// by a match in search order; only the few rows that the statement found itself are scanned.
func TestSearchReadsByIndex(t *testing.T) {
	s := newSearcher(t, searchtest.Sample(t))
	for statement, want := range map[string]int{searchStatement: 7, forgivingStatement: 2, acronymStatement: 1} {
		require.Equal(t, want, s.indexReads(t, statement))
	}
}

// indexReads counts how often a statement reads the index of terms.
func (s *searcher) indexReads(t *testing.T, statement string) (matches int) {
	t.Helper()
	plan := searchtest.Prepare(t, s.conn, "EXPLAIN QUERY PLAN "+statement)
	for plan.Step() {
		line := plan.ColumnText(3)
		if strings.HasPrefix(line, "SCAN search_index ") {
			require.Contains(t, line, "SCAN search_index VIRTUAL TABLE INDEX 64:M", "a match in the order of rowids")
			matches++
		}
		for _, table := range []string{"n", "s", "search_name", "company", "llp"} {
			require.False(t, strings.HasPrefix(line+" ", "SCAN "+table+" "), line)
		}
	}
	require.NoError(t, plan.Err())
	return matches
}

func BenchmarkSearch(b *testing.B) {
	records := searchtest.Real(b)
	s := newSearcher(b, records)
	random := rand.New(rand.NewPCG(9, 9))
	queries := make([]string, 1000)
	for i := range queries {
		queries[i] = vary(random, records[random.IntN(len(records))].Name)
	}
	b.ResetTimer()
	for i := range b.N {
		s.find(b, queries[i%len(queries)], 5)
	}
}
