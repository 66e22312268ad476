package simulation

import (
	"go/ast"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a break of the code that the simulation must find: a change of the statement or
// expression that the directive //mutant:NAME marks in the code under test. It names no
// identifier of that code, so renames leave it alone.
type mutant struct {
	steps  int // of a run, where a mistake shows in long ones only; 0 for the flag -steps
	name   string
	change func(*mark) []edit
	needs  []string // further directives that the change reads
}

var mutants = []mutant{
	{name: "charge-not-journalled", change: skip},
	{name: "void-not-journalled", change: skip},
	{name: "request-ids-forgotten-at-restart", change: skip},
	{name: "idempotency-key-forgotten", change: skip},
	{name: "idempotency-keys-forgotten-at-restart", change: skip},
	{name: "idempotency-keys-forgotten-at-a-jump", change: skip},
	{name: "snapshot-without-idempotency-keys", change: skip},
	{name: "voided-charge-not-charged-again", change: skip},
	{name: "repeated-row-grants-again", change: replaceWith("added := r.Granted")},
	{name: "returned-units-still-spent", change: skip},
	{name: "old-refusal-believed", change: dropLastOperand},
	{name: "refusal-believed-for-five-seconds", change: timesFive},
	{name: "refusal-not-asked-since", change: never},
	{name: "lease-of-a-future-window-believed", change: compare("==", ">=")},
	{name: "lease-of-a-past-window-dropped", change: never},
	{name: "snapshot-without-batch-in-flight", change: skip},
	{name: "usage-of-older-copy-reported-again", change: skip},
	{name: "batch-sent-before-durable", change: skip},
	{name: "reported-batches-not-archived", change: returnNil},
	{name: "failed-sync-ignored", change: never},
	{name: "failed-write-not-cut-off", change: never},
	{name: "frame-not-bound-to-its-place", change: replaceWith("return 0")},
	{name: "checksum-ignored", change: replaceWith("return true")},
	{name: "damage-taken-for-a-torn-tail", change: always},
	{name: "segment-dropped-before-archive-durable", change: skip},
	{name: "batch-applied-twice", change: lastOperator("==", "<=")},
	{name: "applied-sequence-not-stored", change: replaceWith("uint64(0)")},
	{name: "older-disk-copy-not-fenced", change: never},
	{name: "ended-leases-granted-again", change: giveBackEnded, needs: []string{"extend-lease", "give-back"}},
	{name: "ended-lease-not-extended", change: moveIntoPrevious},
	{name: "restored-ledger-grants-at-once", change: dropFirstOperand},
	{name: "grants-compensated-before-returns", change: also("cover"), needs: []string{"cover"}},
	{name: "ids-given-again-after-a-restore", change: skip},
	{name: "late-report-debited-twice", change: never},
	{name: "adjustment-takes-leased-units", change: keepFirstArgument},
	{name: "second-writer-not-fenced", change: lastOperator("!=", ">")},
	{name: "failed-commit-answered", change: returnNil},
	{name: "failed-group-fails-all", change: never},
	{name: "unavailable-change-made-later", change: never},
	{name: "change-forgotten-under-its-key", change: returnNil},
	{name: "key-of-another-change-answered", change: never},
	{name: "commit-loop-waits-for-projection", change: replaceWith("project(); if projected != nil { <-projected.projected }")},
	{name: "pending-change-said-to-be-done", change: skip},
	{name: "puts-projected-before-drops", change: skip},
	{name: "voids-undo-what-others-spent", change: replaceWith("units = max(units-beyond, -p.Spent)")},
	{name: "second-writer-takes-over-unasked", change: never},
	{name: "counts-not-bounded", change: replaceWith("u.Count = d.between(-1<<62, 1<<62)")},
	{name: "nonsense-not-fenced", change: skip},
	{name: "refused-row-holds-up-others", change: always},
	{name: "contradiction-of-the-writer-believed", change: never},
	{name: "declaration-taken-unasked", change: never},
	{name: "lost-batch-keeps-its-leases", change: never},
	{name: "limited-key-not-counted", change: skip},
	{name: "months-of-a-key-not-loaded", change: skip},
	{name: "key-limit-not-projected", change: skip},
	{name: "archive-ends-at-its-damage", change: replaceWith("if f.gap > 0 { break }")},
}

// mutantSeeds is within how many seeds each mutant has to be found: a third of those that
// TestSeeds runs, so that other seeds find it too.
const mutantSeeds = 660

// skip never runs a statement.
func skip(m *mark) []edit { return m.replace(m.node, "if false {\n"+m.text(m.node)+"\n}") }

// returnNil returns nil in place of a statement and what follows it.
func returnNil(m *mark) []edit {
	return m.replace(m.node, "if true {\nreturn nil\n}\n"+m.text(m.node))
}

// never makes a condition false.
func never(m *mark) []edit {
	c := m.condition()
	return m.replace(c, "false && ("+m.text(c)+")")
}

// always makes a condition true.
func always(m *mark) []edit {
	c := m.condition()
	return m.replace(c, "true || ("+m.text(c)+")")
}

// dropFirstOperand and dropLastOperand take one condition out of several joined by &&.
func dropFirstOperand(m *mark) []edit { return m.replace(m.operands()[0], "true") }
func dropLastOperand(m *mark) []edit {
	all := m.operands()
	return m.replace(all[len(all)-1], "true")
}

// lastOperator compares differently in the last of several joined conditions.
func lastOperator(from, to string) func(*mark) []edit {
	return func(m *mark) []edit {
		all := m.operands()
		c, ok := all[len(all)-1].(*ast.BinaryExpr)
		require.True(m.t, ok && c.Op.String() == from, "%s: want a comparison by %s", m.name, from)
		return m.replace(c, m.text(c.X)+" "+to+" "+m.text(c.Y))
	}
}

// timesFive makes the greater side of a comparison five times as great.
func timesFive(m *mark) []edit {
	c, ok := m.condition().(*ast.BinaryExpr)
	require.True(m.t, ok, "%s: want a comparison", m.name)
	return m.replace(c.Y, "5*("+m.text(c.Y)+")")
}

// compare changes the operator of a single comparison.
func compare(from, to string) func(*mark) []edit {
	return func(m *mark) []edit {
		c, ok := m.condition().(*ast.BinaryExpr)
		require.True(m.t, ok && c.Op.String() == from, "%s: want a comparison by %s", m.name, from)
		return m.replace(c, m.text(c.X)+" "+to+" "+m.text(c.Y))
	}
}

// also runs the statement of another directive after the marked one, of the same receiver.
func also(other string) func(*mark) []edit {
	return func(m *mark) []edit {
		return m.replace(m.node, m.text(m.node)+"\n"+m.others[other].text(m.others[other].node))
	}
}

// keepFirstArgument puts the first argument of a call in its place.
func keepFirstArgument(m *mark) []edit {
	call, ok := m.assigned().(*ast.CallExpr)
	require.True(m.t, ok, "%s: want the result of a call", m.name)
	return m.replace(call, m.text(call.Args[0]))
}

func replaceWith(text string) func(*mark) []edit {
	return func(m *mark) []edit { return m.replace(m.node, text) }
}

// moveIntoPrevious runs a statement only when the if before it holds.
func moveIntoPrevious(m *mark) []edit {
	before, ok := m.previous().(*ast.IfStmt)
	require.True(m.t, ok, "%s: want an if before it", m.name)
	return append(m.insert(before.Body.Rbrace, m.text(m.node)+"\n"), m.replace(m.node, "")...)
}

// giveBackEnded returns, before the marked loop over leases, what is outstanding of those that
// ended. The outstanding units and the end of a lease come from the condition by which leases
// are extended, "outstanding > 0 && end-now < limit", in a method that the loop calls.
func giveBackEnded(m *mark) []edit {
	loop, ok := m.node.(*ast.RangeStmt)
	require.True(m.t, ok, "%s: want a loop over leases", m.name)
	extend := m.others["extend-lease"]
	method := extend.function()
	call := m.call(method.Name.Name)
	operands := extend.operands()
	outstanding, left := operands[0].(*ast.BinaryExpr).X, operands[1].(*ast.BinaryExpr).X
	lease := outstanding.(*ast.CallExpr).Fun.(*ast.SelectorExpr).X
	receiver := method.Recv.List[0]
	giveBack := receiver.Names[0].Name + "." + m.others["give-back"].node.(*ast.FuncDecl).Name.Name
	text := m.source[loop.Pos()-m.base:loop.Body.Lbrace-m.base] + "{\nfunc(" + extend.text(receiver)
	for _, p := range method.Type.Params.List {
		text += ", " + extend.text(p)
	}
	text += ") {\nif " + extend.text(operands[0]) + " && " + extend.text(left) + " < 0 {\n" + giveBack + "(" + extend.text(lease) + ", " + extend.text(outstanding) + ")\n}\n}("
	text += m.text(call.Fun.(*ast.SelectorExpr).X)
	for _, a := range call.Args {
		text += ", " + m.text(a)
	}
	return m.insert(loop.Pos(), text+")\n}\n")
}

// TestEveryMutantHasItsDirective holds that the table and the directives agree, and that the
// mutants compile: all of them at once.
func TestEveryMutantHasItsDirective(t *testing.T) {
	marks := findMarks(t)
	var used []string
	var edits []edit
	for _, m := range mutants {
		used = append(append(used, m.name), m.needs...)
		edits = append(edits, m.edits(t, marks)...)
	}
	for name := range marks {
		require.Contains(t, used, name, "a directive without a mutant")
	}
	out, err := exec.Command("go", "build", "-overlay", overlay(t, edits, nil), codeUnderTest+"/...").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func (m mutant) edits(t *testing.T, marks map[string]*mark) []edit {
	for _, name := range append([]string{m.name}, m.needs...) {
		require.Contains(t, marks, name, "a mutant without its directive //mutant:%s", name)
	}
	at := *marks[m.name]
	at.t = t
	return m.change(&at)
}
