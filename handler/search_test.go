package handler

import (
	"encoding/json"
	"math/rand/v2"
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
	statement *sqlite3.Stmt
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
	return &searcher{c, searchtest.Prepare(t, c, searchStatement), newReference(records)}
}

// find returns the matches of a search as JSON.
func (s *searcher) find(t testing.TB, name string, limit int) string {
	t.Helper()
	for i, v := range searchArgs(name, limit) {
		if v.Kind == Integer {
			require.NoError(t, s.statement.BindInt64(i+1, v.Int))
		} else {
			require.NoError(t, s.statement.BindText(i+1, v.Text))
		}
	}
	defer s.statement.Reset()
	require.True(t, s.statement.Step(), "%q: %v", name, s.statement.Err())
	require.Equal(t, "first", s.statement.ColumnText(0))
	found := s.statement.ColumnText(1)
	require.False(t, s.statement.Step(), "%q: one row only", name)
	require.NoError(t, s.statement.Err())
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
	switch random.IntN(9) {
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
	case 7: // short forms
		return strings.NewReplacer("PRIVATE", "Pvt.", "LIMITED", "Ltd.", "AND", "&", "COMPANY", "Co.").Replace(name)
	}
	return strings.ToLower(strings.Join(words, "-"))
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

// TestSearchReadsByIndex checks the query plan: tables are searched by key and the index of terms
// by a match in search order; only the few rows that the statement found itself are scanned.
func TestSearchReadsByIndex(t *testing.T) {
	s := newSearcher(t, searchtest.Sample(t))
	plan := searchtest.Prepare(t, s.conn, "EXPLAIN QUERY PLAN "+searchStatement)
	matches := 0
	for plan.Step() {
		line := plan.ColumnText(3)
		if strings.HasPrefix(line, "SCAN search_index ") {
			require.Contains(t, line, "SCAN search_index VIRTUAL TABLE INDEX 64:M", "a match in the order of rowids")
			matches++
		}
		for _, table := range []string{"n", "s", "search_name"} {
			require.False(t, strings.HasPrefix(line+" ", "SCAN "+table+" "), line)
		}
	}
	require.NoError(t, plan.Err())
	require.Equal(t, 7, matches)
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
