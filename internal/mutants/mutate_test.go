package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const example = `package p

func less(a, b int) bool {
	if a < b && a != 0 || b%2 == 1 {
		a++
		return a-b > -1
	}
	for i := range 3 {
		if i == 2 {
			continue
		}
		a += i << 1
		note(a, b)
	}
	return pair(a, b) <= 4
}

func note(a, b int) {
	_ = a
	total = b
}

func pair(a, b int) int { return a * b }

var total int

const most = 60 * 1000

const (
	rows   = "SELECT n FROM t WHERE a = ?1 AND n < 3"
	sorted = rows + " ORDER BY n DESC"
)
`

// switches stand for switch.go.txt, which imports packages.
const switches = `package p

func mutantOn(int) bool                        { return false }
func mutantNot(int, bool) bool                 { return false }
func mutantOr(int, bool, func() bool) bool     { return false }
func mutantAnd(int, bool, func() bool) bool    { return false }
func mutantBoth(int, bool, func() bool) bool   { return false }
func mutantEither(int, bool, func() bool) bool { return false }
func mutantSQL(int, string, string) string     { return "" }
`

// mutantsOf finds the mutants of a source without imports, and what makes variables of its constants.
func mutantsOf(t *testing.T, source string) (list []*mutant, variables []edit) {
	t.Helper()
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, "p.go", source, 0)
	require.NoError(t, err)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	pkg, err := (&types.Config{}).Check("p", fset, []*ast.File{syntax}, info)
	require.NoError(t, err)
	next := 0
	for _, planted := range []bool{false, true} {
		f := &file{fset: fset, info: info, pkg: pkg, syntax: syntax, name: "p.go", source: source, lines: strings.Split(source, "\n"), next: &next, planted: planted}
		list, variables = append(list, f.find()...), f.variables()
	}
	return list, variables
}

// TestAllMutantsTogetherCompile, however they nest.
func TestAllMutantsTogetherCompile(t *testing.T) {
	mutants, edits := mutantsOf(t, example)
	kinds := map[string]int{}
	for _, m := range mutants {
		kinds[m.kind]++
		edits = append(edits, m.edits...)
	}
	require.Equal(t, map[string]int{
		"CONDITIONALS_NEGATION": 6, "CONDITIONALS_BOUNDARY": 3, "INVERT_LOGICAL": 2, "ARITHMETIC_BASE": 5, "INVERT_BITWISE": 1,
		"INCREMENT_DECREMENT": 1, "INVERT_LOOPCTRL": 1, "REMOVE_SELF_ASSIGNMENTS": 1,
		"NEVER_TRUE": 2, "LEFT_OUT": 4, "SWAPPED": 2, "RETURN_AT_ONCE": 1,
		"SQL_CONDITION": 2, "SQL_BOUNDARY": 1, "SQL_ORDER": 2,
	}, kinds)
	changed := apply(example, edits)
	fset := token.NewFileSet()
	var files []*ast.File
	for name, source := range map[string]string{"p.go": changed, "switch.go": switches} {
		syntax, err := parser.ParseFile(fset, name, source, 0)
		require.NoError(t, err, changed)
		files = append(files, syntax)
	}
	_, err := (&types.Config{}).Check("p", fset, files, nil)
	require.NoError(t, err, changed)
}

// TestAConstantIsBuiltByItself: it can't be switched.
func TestAConstantIsBuiltByItself(t *testing.T) {
	mutants, _ := mutantsOf(t, example)
	for _, m := range mutants {
		if strings.HasPrefix(m.text, "const most") {
			require.Empty(t, m.edits)
			require.Equal(t, "*", m.from)
			require.Equal(t, "/", m.to)
			return
		}
	}
	require.Fail(t, "it is missing")
}

func TestMistakesInSQL(t *testing.T) {
	for text, want := range map[string][]string{
		"no SQL, and all > none": nil,
		"SELECT 1 FROM t WHERE a = 1 AND (b > 2 OR c)": {
			"SELECT 1 FROM t WHERE a = 1 AND (b >= 2 OR c)", "SELECT 1 FROM t WHERE a = 1", "SELECT 1 FROM t WHERE a = 1 AND (b > 2)",
			"SELECT 1 FROM t WHERE (b > 2 OR c)",
		},
		"SELECT max(a) FROM t WHERE b BETWEEN 1 AND 2 AND c IS NULL ORDER BY a DESC LIMIT 1": {
			"SELECT max(a) FROM t WHERE b BETWEEN 1 AND 2 AND c IS NULL ORDER BY a LIMIT 1",
			"SELECT max(a) FROM t WHERE b BETWEEN 1 AND 2 AND c IS NULL LIMIT 1",
			"SELECT max(a) FROM t WHERE b BETWEEN 1 AND 2 AND c IS NOT NULL ORDER BY a DESC LIMIT 1",
			"SELECT min(a) FROM t WHERE b BETWEEN 1 AND 2 AND c IS NULL ORDER BY a DESC LIMIT 1",
			"SELECT max(a) FROM t WHERE b BETWEEN 1 AND 2 ORDER BY a DESC LIMIT 1",
		},
		"INSERT OR IGNORE INTO t SELECT a - 1 FROM u LEFT JOIN v": {
			"INSERT OR IGNORE INTO t SELECT a + 1 FROM u LEFT JOIN v", "INSERT OR IGNORE INTO t SELECT a - 1 FROM u JOIN v",
			"INSERT OR REPLACE INTO t SELECT a - 1 FROM u LEFT JOIN v",
		},
	} {
		var got []string
		for _, c := range sqlChanges(text) {
			got = append(got, text[:c.from]+c.by+text[c.to:])
		}
		require.Equal(t, want, got, text)
	}
}

func TestAVerdictNamesTheTestThatFailed(t *testing.T) {
	require.Equal(t, outcome{"KILLED", "TestOne"}, verdict("--- FAIL: TestOne (0.00s)\n    one_test.go:1\nFAIL"))
	require.Equal(t, outcome{"TIMED OUT", ""}, verdict("panic: test timed out after 20s"))
	require.Equal(t, outcome{"KILLED", "crash"}, verdict("fatal error: all goroutines are asleep"))
}

// TestMutantsAtOnceAreShownInOrder, and no more run at once than asked for.
func TestMutantsAtOnceAreShownInOrder(t *testing.T) {
	for asked, want := range map[int]int{0: 1, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			var mutants []*mutant
			for id := range 7 {
				mutants = append(mutants, &mutant{id: id})
			}
			var running, most atomic.Int64
			try := func(m *mutant) outcome {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Duration(10-m.id) * time.Second) // the first takes longest
				running.Add(-1)
				return outcome{result: strconv.Itoa(m.id)}
			}
			var shown []string
			inOrder(asked, mutants, try, func(m *mutant, o outcome) {
				require.Equal(t, strconv.Itoa(m.id), o.result)
				shown = append(shown, o.result)
			})
			require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, shown)
			require.EqualValues(t, want, most.Load())
		})
	}
}
