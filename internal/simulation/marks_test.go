package simulation

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// codeUnderTest is the folder whose directives are read.
const codeUnderTest = "../../replicate/metering"

const directive = "//mutant:"

// mark is the outermost statement, declaration or expression that begins right after a
// directive //mutant:NAME.
type mark struct {
	t      *testing.T
	name   string
	node   ast.Node
	path   string
	source string
	base   token.Pos // of the source's first byte
	file   *ast.File
	others map[string]*mark // all marks, by name
}

// edit replaces the bytes from:to of a file.
type edit struct {
	file     string
	from, to int
	text     string
}

// findMarks reads all directives of the code under test.
func findMarks(t *testing.T) map[string]*mark {
	marks := map[string]*mark{}
	root, err := filepath.Abs(codeUnderTest)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(source), directive) {
			markFile(t, path, string(source), marks)
		}
		return err
	}))
	return marks
}

func markFile(t *testing.T, path, source string, marks map[string]*mark) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, group := range file.Comments {
		for _, comment := range group.List {
			name, ok := strings.CutPrefix(comment.Text, directive)
			if !ok {
				continue
			}
			require.NotContains(t, marks, name, "two directives of one name")
			m := &mark{t: t, name: name, path: path, source: source, base: file.FileStart, file: file, others: marks}
			m.node = m.firstAfter(group.End())
			require.NotNil(t, m.node, "%s: nothing begins after %s%s", path, directive, name)
			marks[name] = m
		}
	}
}

// firstAfter is the outermost node that begins with the next token.
func (m *mark) firstAfter(at token.Pos) (first ast.Node) {
	ast.Inspect(m.file, func(n ast.Node) bool {
		if n == nil || n.End() <= at {
			return false
		}
		if _, isComment := n.(*ast.CommentGroup); isComment {
			return false
		}
		if n.Pos() > at && first == nil && strings.TrimSpace(m.source[at-m.base:n.Pos()-m.base]) == "" {
			first = n
		}
		return first == nil
	})
	return first
}

func (m *mark) text(n ast.Node) string { return m.source[n.Pos()-m.base : n.End()-m.base] }

func (m *mark) replace(n ast.Node, text string) []edit {
	return []edit{{m.path, int(n.Pos() - m.base), int(n.End() - m.base), text}}
}

func (m *mark) insert(at token.Pos, text string) []edit {
	return []edit{{m.path, int(at - m.base), int(at - m.base), text}}
}

// condition is the condition of an if or a case, or the value that is returned or assigned.
func (m *mark) condition() ast.Expr {
	switch n := m.node.(type) {
	case *ast.IfStmt:
		return n.Cond
	case *ast.CaseClause:
		require.Len(m.t, n.List, 1, "%s: want one condition", m.name)
		return n.List[0]
	case *ast.ReturnStmt:
		require.Len(m.t, n.Results, 1, "%s: want one result", m.name)
		return n.Results[0]
	}
	return m.assigned()
}

// assigned is the value of an assignment, or of the one that an if begins with.
func (m *mark) assigned() ast.Expr {
	n := m.node
	if i, ok := n.(*ast.IfStmt); ok {
		n = i.Init
	}
	a, ok := n.(*ast.AssignStmt)
	require.True(m.t, ok && len(a.Rhs) == 1, "%s: want an assignment of one value", m.name)
	return a.Rhs[0]
}

// operands are the parts of the condition that && or || joins, the outermost of the two.
func (m *mark) operands() []ast.Expr {
	top, ok := m.condition().(*ast.BinaryExpr)
	require.True(m.t, ok && (top.Op == token.LAND || top.Op == token.LOR), "%s: want joined conditions", m.name)
	all := []ast.Expr{top.Y}
	rest := top.X
	for {
		b, ok := rest.(*ast.BinaryExpr)
		if !ok || b.Op != top.Op {
			return append([]ast.Expr{rest}, all...)
		}
		all = append([]ast.Expr{b.Y}, all...)
		rest = b.X
	}
}

// previous is the statement before the marked one.
func (m *mark) previous() (before ast.Stmt) {
	ast.Inspect(m.file, func(n ast.Node) bool {
		if block, ok := n.(*ast.BlockStmt); ok {
			for i, s := range block.List[min(1, len(block.List)):] {
				if s == m.node {
					before = block.List[i]
				}
			}
		}
		return before == nil
	})
	return before
}

// function is the declaration that the marked node is in.
func (m *mark) function() *ast.FuncDecl {
	for _, d := range m.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Pos() <= m.node.Pos() && m.node.End() <= f.End() {
			return f
		}
	}
	require.Fail(m.t, "not in a function", m.name)
	return nil
}

// call is the first call of a method in the marked node.
func (m *mark) call(method string) (found *ast.CallExpr) {
	ast.Inspect(m.node, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && found == nil {
			if s, ok := c.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == method {
				found = c
			}
		}
		return found == nil
	})
	require.NotNil(m.t, found, "%s: no call of %s", m.name, method)
	return found
}
