package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// plant adds the mistakes that gremlins does not make: a missing statement, a condition that is
// never true, two swapped arguments, a function that returns at once, another sign in a piece of SQL.
func (f *file) plant(n ast.Node) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.IfStmt:
		m := f.add("NEVER_TRUE", n.If)
		m.around(f, n.Cond, fmt.Sprintf("!mutantOn(%d) && (", m.id), ")")
	case *ast.CallExpr:
		f.swap(n)
	case *ast.BasicLit:
		f.sql(n)
	case *ast.FuncDecl:
		if n.Body != nil && (n.Type.Results == nil || n.Type.Results.NumFields() == 0) && len(n.Body.List) > 1 {
			m := f.add("RETURN_AT_ONCE", n.Name.Pos())
			at := f.at(n.Body.Lbrace) + 1
			m.edits = append(m.edits, edit{offset: at, text: fmt.Sprintf(" if mutantOn(%d) { return }; ", m.id)})
		}
	}
}

func (f *file) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok {
				if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "panic" {
					continue
				}
				if name, ok := call.Fun.(*ast.SelectorExpr); ok && (name.Sel.Name == "Lock" || name.Sel.Name == "Unlock") {
					continue // an endless wait shows itself
				}
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || f.blank(s) {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt:
		default:
			continue
		}
		m := f.add("LEFT_OUT", s.Pos())
		m.around(f, s, fmt.Sprintf("if !mutantOn(%d) { ", m.id), " }")
	}
}

// blank reports whether nothing is assigned.
func (f *file) blank(s *ast.AssignStmt) bool {
	for _, x := range s.Lhs {
		if name, ok := x.(*ast.Ident); !ok || name.Name != "_" {
			return false
		}
	}
	return true
}

// swap exchanges the first two neighbouring arguments of one type.
func (f *file) swap(n *ast.CallExpr) {
	if len(f.stack) > 0 {
		switch f.stack[len(f.stack)-1].(type) {
		case *ast.DeferStmt, *ast.GoStmt:
			return
		}
	}
	signature, ok := f.info.Types[n.Fun].Type.(*types.Signature)
	if !ok || f.info.Types[n.Fun].IsBuiltin() || n.Ellipsis.IsValid() || f.info.Types[n].Value != nil {
		return
	}
	for i := 0; i+1 < len(n.Args); i++ {
		a, b := n.Args[i], n.Args[i+1]
		if i+1 >= signature.Params().Len() || signature.Variadic() && i+1 >= signature.Params().Len()-1 ||
			!types.Identical(signature.Params().At(i).Type(), signature.Params().At(i+1).Type()) || f.raw(a) == f.raw(b) {
			continue
		}
		var results []string
		for v := range signature.Results().Variables() {
			name, ok := f.typeName(v.Type())
			if !ok {
				return
			}
			results = append(results, name)
		}
		m := f.add("SWAPPED", a.Pos())
		swapped := f.source[f.at(n.Pos()):f.at(a.Pos())] + f.raw(b) + ", " + f.raw(a) + f.source[f.at(b.End()):f.at(n.End())]
		back, end := "return ", ""
		if len(results) == 0 {
			back, end = "", "; return"
		}
		m.around(f, n, fmt.Sprintf("func() (%s) { if mutantOn(%d) { %s%s%s }; %s", strings.Join(results, ", "), m.id, back, swapped, end, back), " }()")
		return
	}
}
