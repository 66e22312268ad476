package writer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

// nodeName is the form of an edge's name, which is used in paths and logs.
var nodeName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)

// newToken makes a token for an edge, and its hash.
func (w *Writer) newToken() (string, [32]byte) {
	var random [24]byte
	w.config.Random(random[:])
	token := "reg_node_" + hex.EncodeToString(random[:])
	return token, sha256.Sum256([]byte(token))
}

func (w *Writer) addNode(r *http.Request, _ httprouter.Params) (any, error) {
	var body struct{ Name string }
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if !nodeName.MatchString(body.Name) {
		return nil, fmt.Errorf("%w: a node's name has 1 to 63 characters of a-z, 0-9, '.' and '-'", ErrMalformed)
	}
	token, hash := w.newToken()
	change := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		if l.Edge(body.Name) != nil {
			return &detailed{ErrTaken, fmt.Sprintf("there is a node %s already", body.Name)}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO node (name, token_hash, created_at) VALUES (?, ?, ?)`, body.Name, hash[:], now)
		if err != nil {
			return err
		}
		return l.AddEdge(body.Name)
	}
	return apply(w, r, w.tokenEdit(change, body.Name, token))
}

func (w *Writer) newNodeToken(r *http.Request, p httprouter.Params) (any, error) {
	name := p.ByName("name")
	token, hash := w.newToken()
	change := func(ctx context.Context, tx *sql.Tx, _ int64, l *ledger.Ledger) error {
		e := l.Edge(name)
		switch {
		case e == nil:
			return notFound("node", name)
		case e.Retired:
			return ErrRetired
		}
		_, err := tx.ExecContext(ctx, `UPDATE node SET token_hash = ? WHERE name = ?`, hash[:], name)
		if err == nil {
			e.Forgive()
		}
		return err
	}
	return apply(w, r, w.tokenEdit(change, name, token))
}

// tokenEdit is a change that gives an edge a token, its only one.
func (w *Writer) tokenEdit(change changeFunc, name, token string) edit[NewNode] {
	return edit[NewNode]{
		change: change,
		answer: func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) (NewNode, error) {
			node, err := readNode(ctx, tx, now, l, name)
			return NewNode{node, token}, err
		},
		committed: func(n NewNode) { w.setToken(n.Name, sha256.Sum256([]byte(n.Token))) },
	}
}

// setToken makes the token with this hash the only one of an edge.
func (w *Writer) setToken(name string, hash [32]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.tokens, func(_ [32]byte, of string) bool { return of == name })
	w.tokens[hash] = name
	w.offenders.forgive(name)
}

func (w *Writer) retireNode(r *http.Request, p httprouter.Params) (any, error) {
	name := p.ByName("name")
	var body struct {
		OldEpochs bool `json:"old_epochs"`
	}
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	change := func(_ context.Context, _ *sql.Tx, now int64, l *ledger.Ledger) error {
		if l.Edge(name) == nil {
			return notFound("node", name)
		}
		return l.Retire(now, name, body.OldEpochs)
	}
	answer := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) (Node, error) {
		return readNode(ctx, tx, now, l, name)
	}
	return apply(w, r, edit[Node]{change: change, answer: answer, committed: w.noteRetired})
}

// noteRetired ends what a node still gets from this writer, if it is retired.
func (w *Writer) noteRetired(n Node) {
	if !n.Retired {
		return // only its earlier epochs were written off
	}
	w.mu.Lock()
	w.retired[n.Name] = true
	w.mu.Unlock()
	w.reports.dropTokens(n.Name)
	w.clocks.forget(n.Name)
}

// isRetired reports whether a node is retired.
func (w *Writer) isRetired(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.retired[name]
}

const selectNodes = `SELECT name, created_at FROM node`

func readNode(ctx context.Context, db querier, now int64, l *ledger.Ledger, name string) (Node, error) {
	n, err := scanNode(db.QueryRowContext(ctx, selectNodes+` WHERE name = ?`, name), now, l)
	if errors.Is(err, sql.ErrNoRows) {
		return n, notFound("node", name)
	}
	return n, err
}

func scanNode(row interface{ Scan(...any) error }, now int64, l *ledger.Ledger) (Node, error) {
	var n Node
	var created int64
	if err := row.Scan(&n.Name, &created); err != nil {
		return n, err
	}
	n.Created = time.UnixMilli(created).UTC()
	n.addLedger(l, now)
	return n, nil
}

// nodesPage selects nodes by name, in the order of their names.
const nodesPage = ` WHERE name > ?1 AND name LIKE ?2 ESCAPE '\' ORDER BY name LIMIT ?3`

// listNodes lists the edges, with what only the ledger in memory knows.
func (w *Writer) listNodes(r *http.Request, _ httprouter.Params) (any, error) {
	q, err := readListQuery(r)
	if err != nil {
		return nil, err
	}
	var nodes []Node // to be read only after a look without an error: else Run may still write it
	err = w.look(r, func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) (err error) {
		nodes, err = collect(ctx, tx, selectNodes+nodesPage, []any{q.Cursor, q.pattern(), q.more()}, func(rows *sql.Rows) (Node, error) {
			n, err := scanNode(rows, now, l)
			n.Fenced = w.offenders.fenced(n.Name)
			return n, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return pageOf(q, nodes, func(n Node) string { return n.Name }), nil
}

// addLedger adds what the ledger knows of the edge.
func (n *Node) addLedger(l *ledger.Ledger, now int64) {
	e := l.Edge(n.Name)
	if e == nil {
		return
	}
	n.Retired, n.Epoch, n.Applied, n.Live = e.Retired, e.Epoch, e.Applied(), e.IsLive(now)
	n.Leased, n.Stale = l.Out(e)
	if e.Seen != 0 {
		n.Seen = time.UnixMilli(e.Seen).UTC()
	}
}
