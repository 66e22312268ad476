package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// mutant is one mistake that the test binary can be told to make.
type mutant struct {
	id      int
	kind    string
	planted bool
	file    string // base name
	line    int
	col     int
	text    string // the line
	// edits switch it at run time; without them from is replaced by to in a copy of the file,
	// and the package is built again.
	edits    []edit
	offset   int
	from, to string
}

// operators lists what gremlins 0.6.0 makes of each operator, by its names of the kinds.
var operators = map[token.Token][]struct {
	kind string
	to   token.Token
}{
	token.ADD: {{"ARITHMETIC_BASE", token.SUB}}, token.SUB: {{"ARITHMETIC_BASE", token.ADD}},
	token.MUL: {{"ARITHMETIC_BASE", token.QUO}}, token.QUO: {{"ARITHMETIC_BASE", token.MUL}},
	token.REM: {{"ARITHMETIC_BASE", token.MUL}},
	token.AND: {{"INVERT_BITWISE", token.OR}}, token.OR: {{"INVERT_BITWISE", token.AND}},
	token.XOR: {{"INVERT_BITWISE", token.AND}}, token.AND_NOT: {{"INVERT_BITWISE", token.AND}},
	token.SHL: {{"INVERT_BITWISE", token.SHR}}, token.SHR: {{"INVERT_BITWISE", token.SHL}},
	token.LAND: {{"INVERT_LOGICAL", token.LOR}}, token.LOR: {{"INVERT_LOGICAL", token.LAND}},
	token.EQL: {{"CONDITIONALS_NEGATION", token.NEQ}}, token.NEQ: {{"CONDITIONALS_NEGATION", token.EQL}},
	token.LSS: {{"CONDITIONALS_NEGATION", token.GEQ}, {"CONDITIONALS_BOUNDARY", token.LEQ}},
	token.LEQ: {{"CONDITIONALS_NEGATION", token.GTR}, {"CONDITIONALS_BOUNDARY", token.LSS}},
	token.GTR: {{"CONDITIONALS_NEGATION", token.LEQ}, {"CONDITIONALS_BOUNDARY", token.GEQ}},
	token.GEQ: {{"CONDITIONALS_NEGATION", token.LSS}, {"CONDITIONALS_BOUNDARY", token.GTR}},
}

// file finds the mutants of one source file.
type file struct {
	fset    *token.FileSet
	info    *types.Info
	pkg     *types.Package
	syntax  *ast.File
	name    string
	source  string
	lines   []string
	imports map[string]string // path to name
	stack   []ast.Node
	next    *int
	planted bool // whole statements and arguments, in place of operators
	found   []*mutant
}

func (f *file) at(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *file) raw(n ast.Node) string { return f.source[f.at(n.Pos()):f.at(n.End())] }

func (f *file) add(kind string, at token.Pos) *mutant {
	*f.next++
	p := f.fset.Position(at)
	m := &mutant{id: *f.next, kind: kind, planted: f.planted, file: f.name, line: p.Line, col: p.Column, text: strings.TrimSpace(f.lines[p.Line-1]), offset: p.Offset}
	f.found = append(f.found, m)
	return m
}

// around inserts text before and after a node.
func (m *mutant) around(f *file, n ast.Node, before, after string) {
	from, to := f.at(n.Pos()), f.at(n.End())
	order := m.id
	if m.planted {
		order -= 1 << 30 // around the changed operators of the same node
	}
	m.edits = append(m.edits,
		edit{offset: from, size: to - from, order: order, text: before},
		edit{offset: to, size: to - from, order: order, closes: true, text: after})
}

func (f *file) find() []*mutant {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if n == nil {
			f.stack = f.stack[:len(f.stack)-1]
			return true
		}
		if f.planted {
			f.plant(n)
		} else {
			f.operator(n)
		}
		f.stack = append(f.stack, n)
		return true
	})
	return f.found
}

// operator adds the mutants of a node as gremlins makes them.
func (f *file) operator(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.SUB {
			f.minus(n)
		}
	case *ast.IncDecStmt:
		to := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		m := f.add("INCREMENT_DECREMENT", n.TokPos)
		m.around(f, n, fmt.Sprintf("func() { if mutantOn(%d) { %s%s } else { ", m.id, f.raw(n.X), to), " } }()")
	case *ast.AssignStmt:
		if n.Tok == token.ASSIGN || n.Tok == token.DEFINE {
			return
		}
		m := f.add("REMOVE_SELF_ASSIGNMENTS", n.TokPos)
		m.around(f, n, fmt.Sprintf("func() { if mutantOn(%d) { %s = %s } else { ", m.id, f.raw(n.Lhs[0]), f.raw(n.Rhs[0])), " } }()")
	case *ast.BranchStmt:
		f.branch(n)
	}
}

func (f *file) binary(n *ast.BinaryExpr) {
	t := f.info.Types[n]
	for _, o := range operators[n.Op] {
		if b, ok := t.Type.Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
			continue // does not compile
		}
		if y := f.info.Types[n.Y].Value; o.to == token.QUO && y != nil && constant.Sign(y) == 0 {
			continue
		}
		m := f.add(o.kind, n.OpPos)
		m.from, m.to = n.Op.String(), o.to.String()
		if t.Value != nil {
			continue // a constant: built separately
		}
		x, y := f.raw(n.X), f.raw(n.Y)
		switch o.kind {
		case "CONDITIONALS_NEGATION":
			m.around(f, n, fmt.Sprintf("mutantNot(%d, ", m.id), ")")
		case "CONDITIONALS_BOUNDARY":
			if o.to == token.LEQ || o.to == token.GEQ {
				m.around(f, n, fmt.Sprintf("mutantOr(%d, ", m.id), ", func() bool { return "+x+" == ("+y+") })")
			} else {
				m.around(f, n, fmt.Sprintf("mutantAnd(%d, ", m.id), ", func() bool { return "+x+" != ("+y+") })")
			}
		case "INVERT_LOGICAL":
			m.around(f, n, fmt.Sprintf("mutant%s(%d, ", map[token.Token]string{token.LAND: "Both", token.LOR: "Either"}[n.Op], m.id), ") })")
			m.edits = append(m.edits, edit{offset: f.at(n.OpPos), cut: 2, text: ", func() bool { return ("})
		default:
			name, ok := f.typeName(t.Type)
			if !ok {
				continue
			}
			m.around(f, n, fmt.Sprintf("func() %s { if mutantOn(%d) { return %s %s %s }; return ", name, m.id, x, o.to, y), " }()")
		}
	}
}

func (f *file) minus(n *ast.UnaryExpr) {
	t := f.info.Types[n]
	m := f.add("ARITHMETIC_BASE", n.OpPos)
	m.from, m.to = "-", "+"
	if name, ok := f.typeName(t.Type); ok && t.Value == nil {
		m.around(f, n, fmt.Sprintf("func() %s { if mutantOn(%d) { return %s }; return ", name, m.id, f.raw(n.X)), " }()")
	}
}

func (f *file) branch(n *ast.BranchStmt) {
	to := map[token.Token]string{token.BREAK: "continue", token.CONTINUE: "break"}[n.Tok]
	if to == "" || !f.inLoop() {
		return
	}
	m := f.add("INVERT_LOOPCTRL", n.Pos())
	m.from, m.to = n.Tok.String(), to
	if f.endless() {
		return // a function may end with it, and would then lack a return
	}
	label := ""
	if n.Label != nil {
		label = " " + n.Label.Name
	}
	m.around(f, n, fmt.Sprintf("if mutantOn(%d) { %s%s }; ", m.id, to, label), "")
}

func (f *file) inLoop() bool {
	for i := len(f.stack) - 1; i >= 0; i-- {
		switch f.stack[i].(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return true
		case *ast.FuncDecl, *ast.FuncLit:
			return false
		}
	}
	return false
}

// endless reports whether the innermost loop has no condition.
func (f *file) endless() bool {
	for i := len(f.stack) - 1; i >= 0; i-- {
		switch n := f.stack[i].(type) {
		case *ast.ForStmt:
			return n.Cond == nil
		case *ast.RangeStmt:
			return false
		}
	}
	return false
}

// typeName is the type as this file can write it.
func (f *file) typeName(t types.Type) (string, bool) {
	ok := true
	name := types.TypeString(types.Default(t), func(p *types.Package) string {
		if p == f.pkg {
			return ""
		}
		name := f.imports[p.Path()]
		ok = ok && name != ""
		return name
	})
	return name, ok && !strings.Contains(name, "invalid type")
}
