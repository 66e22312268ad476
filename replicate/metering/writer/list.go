package writer

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of a page of a list, in rows.
const (
	defaultPage = 100
	maxPage     = 500
)

// maxSearch bounds what is searched for, in characters.
const maxSearch = 200

// ListQuery selects a page of a list.
type ListQuery struct {
	// Search selects what contains this text; letters from A to Z in any case, others as they are. Empty selects everything.
	Search string
	// Limit is the most rows, 1 to 500; 0 is 100.
	Limit int
	// Cursor is the Next of the page before; empty begins the list.
	Cursor string
}

// Page is a part of a list.
type Page[T any] struct {
	Data []T `json:"data"`
	// Next is the cursor of the next page, left out on the last one.
	Next string `json:"next,omitempty"`
}

// pageParams are the parameters of every route that answers a Page.
var pageParams = []string{"search", "limit", "cursor"}

// checkQuery refuses unknown parameters of a route, and repeated ones: a misspelt filter must not look as
// if nothing were filtered.
func checkQuery(r *http.Request, params []string) error {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: the query can't be read", ErrMalformed)
	}
	for name, values := range given {
		switch {
		case !slices.Contains(params, name) && len(params) == 0:
			return fmt.Errorf("%w: there is no parameter %q; this call has none", ErrMalformed, name)
		case !slices.Contains(params, name):
			return fmt.Errorf("%w: there is no parameter %q, but %s", ErrMalformed, name, strings.Join(params, ", "))
		case len(values) > 1:
			return fmt.Errorf("%w: the parameter %s is given twice", ErrMalformed, name)
		}
	}
	return nil
}

// readListQuery reads the parameters of a page.
func readListQuery(r *http.Request) (ListQuery, error) {
	given := r.URL.Query()
	q := ListQuery{Search: strings.TrimSpace(given.Get("search")), Limit: defaultPage, Cursor: given.Get("cursor")}
	if given.Has("limit") {
		var err error
		if q.Limit, err = strconv.Atoi(given.Get("limit")); err != nil || q.Limit < 1 || q.Limit > maxPage {
			return q, fmt.Errorf("%w: limit is a number from 1 to %d", ErrMalformed, maxPage)
		}
	}
	return q, checkLine("a search", q.Search, maxSearch)
}

// pattern is the search as a pattern for LIKE with the escape \; an empty search matches everything.
func (q ListQuery) pattern() string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(q.Search) + "%"
}

// number reads a cursor that is an id; an empty one is first.
func (q ListQuery) number(first int64) (int64, error) {
	if q.Cursor == "" {
		return first, nil
	}
	id, err := strconv.ParseInt(q.Cursor, 10, 64)
	if err != nil || id < 1 {
		return 0, fmt.Errorf("%w: that is no cursor of this list", ErrMalformed)
	}
	return id, nil
}

// more is how many rows to read: one more than the page holds shows whether it is the last.
func (q ListQuery) more() int { return q.Limit + 1 }

// pageOf cuts rows to a page. cursor names a row.
func pageOf[T any](q ListQuery, rows []T, cursor func(T) string) Page[T] {
	p := Page[T]{Data: rows}
	if len(rows) > q.Limit {
		p.Data = rows[:q.Limit]
		p.Next = cursor(p.Data[q.Limit-1])
	}
	return p
}

// encode writes the query into a URL, after other parameters.
func (q ListQuery) encode(path string, others url.Values) string {
	v := url.Values{}
	for name, values := range others {
		v[name] = values
	}
	for name, value := range map[string]string{"search": q.Search, "cursor": q.Cursor} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// AllOf reads pages from the query on until there are limit rows, or all of them with limit 0. next is the
// cursor of the rest, empty at the end. q.Limit is not used.
func AllOf[T any](ctx context.Context, q ListQuery, limit int, read func(context.Context, ListQuery) (Page[T], error)) (rows []T, next string, err error) {
	rows = []T{}
	for {
		q.Limit = maxPage
		if limit > 0 {
			q.Limit = min(limit-len(rows), maxPage)
		}
		page, err := read(ctx, q)
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, page.Data...)
		if page.Next == "" || limit > 0 && len(rows) >= limit {
			return rows, page.Next, nil
		}
		q.Cursor = page.Next
	}
}

// everything is AllOf without a limit and a cursor.
func everything[T any](ctx context.Context, read func(context.Context, ListQuery) (Page[T], error)) ([]T, error) {
	rows, _, err := AllOf(ctx, ListQuery{}, 0, read)
	return rows, err
}
