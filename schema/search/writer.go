package search

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler/names"
)

// writer holds the statements that change the index, and the text of their terms.
type writer struct {
	nameInsert, nameDelete   *sqlite3.Stmt
	indexInsert, indexDelete *sqlite3.Stmt
	terms                    []byte
}

func newWriter(c *sqlite3.Conn) (*writer, error) {
	w := new(writer)
	for _, p := range []struct {
		to    **sqlite3.Stmt
		query string
	}{
		{&w.nameInsert, insertName},
		{&w.nameDelete, `DELETE FROM search_name WHERE place = ?1`},
		{&w.indexInsert, `INSERT INTO search_index (rowid, terms) VALUES (?1, ?2)`},
		{&w.indexDelete, `INSERT INTO search_index (search_index, rowid, terms) VALUES ('delete', ?1, ?2)`},
	} {
		s, _, err := c.Prepare(p.query)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("prepare %q: %w", p.query, err)
		}
		*p.to = s
	}
	return w, nil
}

func (w *writer) close() {
	for _, s := range []*sqlite3.Stmt{w.nameInsert, w.nameDelete, w.indexInsert, w.indexDelete} {
		if s != nil {
			s.Close()
		}
	}
}

// insert puts e at a free place.
func (w *writer) insert(place int64, e *entry) error {
	if err := errors.Join(bindName(w.nameInsert, place, e), w.nameInsert.Exec()); err != nil {
		return err
	}
	return w.index(w.indexInsert, place, e.name)
}

// remove takes out the row at place, which has name.
func (w *writer) remove(place int64, name string) error {
	if err := w.nameDelete.BindInt64(1, place); err != nil {
		return err
	}
	if err := w.nameDelete.Exec(); err != nil {
		return err
	}
	return w.index(w.indexDelete, place, name)
}

func (w *writer) index(s *sqlite3.Stmt, place int64, name string) error {
	w.terms = names.AppendTerms(w.terms[:0], name)
	if err := s.BindInt64(1, place); err != nil {
		return err
	}
	if err := s.BindRawText(2, w.terms); err != nil {
		return err
	}
	return s.Exec()
}
