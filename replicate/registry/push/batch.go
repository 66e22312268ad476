package push

import (
	"context"
	"encoding/json"
	"fmt"

	"regedge/replicate/registry/libsql"
	"regedge/schema/content"
	"regedge/schema/search"
)

const (
	putContent = `INSERT INTO content_newer (bucket, kind, key, hash, was)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, c.hash
FROM json_each(?1) LEFT JOIN content c ON c.bucket = value ->> 0 AND c.kind = value ->> 1 AND c.key = value ->> 2 WHERE true
ON CONFLICT (bucket, kind, key) DO UPDATE SET hash = excluded.hash`

	dropTerms = `INSERT INTO search_index (search_index, rowid, terms) SELECT 'delete', value ->> 0, value ->> 1 FROM json_each(?1)`
	dropNames = `DELETE FROM search_name WHERE value IN (SELECT value FROM json_each(?1))`
	putNames  = `INSERT INTO search_name (place, value, name, label)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?1)`
	putTerms = `INSERT INTO search_index (rowid, terms) SELECT value ->> 0, value ->> 1 FROM json_each(?1)`
)

const (
	// statementKeys is the most keys whose records one statement writes: a company or the terms of a name have some 400
	// to 900 bytes.
	statementKeys = 2000
	// statementBytes is the most bytes of rows that a statement writes, if they are of several records: sqld takes no argument
	// beyond 4 MiB. The appointments of 2,000 listed companies, or the terms of 2,000 names of 80 characters, have more.
	statementBytes = 2 << 20
)

// statements are the statements that write a batch, without the claim.
func (p *pusher) statements(ctx context.Context, batch []change) ([]libsql.Statement, error) {
	var list []libsql.Statement
	for _, k := range kinds {
		var more []libsql.Statement
		var err error
		if k == entry {
			more, err = p.entryStatements(ctx, batch)
		} else {
			more, err = p.recordStatements(ctx, k, batch)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return append(list, libsql.Statement{SQL: putContent, Args: []any{encode(hashesOf(batch))}}), nil
}

// recordStatements write the records of a kind, and delete the rows that they no longer have.
func (p *pusher) recordStatements(ctx context.Context, k kind, batch []change) (list []libsql.Statement, err error) {
	var all, there []string
	for _, c := range batch {
		if c.Kind != k {
			continue
		}
		all = append(all, c.Key)
		if c.there {
			there = append(there, c.Key)
		}
	}
	for _, held := range content.Tables[k] {
		t := table(held)
		for part := range chunks(there, statementKeys) {
			err := p.readDivided(ctx, t.primaryKeys(), part, func(keys []string, stay string) {
				list = append(list, libsql.Statement{SQL: t.drop(), Args: []any{encode(keys), stay}})
			})
			if err != nil {
				return nil, fmt.Errorf("read the keys of %s: %w", t.Name, err)
			}
		}
		for part := range chunks(all, statementKeys) {
			err := p.readDivided(ctx, t.rows(), part, func(_ []string, rows string) {
				if rows != "[]" {
					list = append(list, libsql.Statement{SQL: t.put(), Args: []any{rows}})
				}
			})
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", t.Name, err)
			}
		}
	}
	return list, nil
}

// readDivided reads from the snapshot what a query returns for keys, and calls each with it, in pieces of at most
// statementBytes where they are of several keys.
func (p *pusher) readDivided(ctx context.Context, query string, keys []string, each func(keys []string, found string)) error {
	found, err := ask(ctx, p.here, query, keys)
	if err != nil {
		return err
	}
	if len(found) <= statementBytes || len(keys) == 1 {
		each(keys, found)
		return nil
	}
	half := len(keys) / 2
	if err := p.readDivided(ctx, query, keys[:half], each); err != nil {
		return err
	}
	return p.readDivided(ctx, query, keys[half:], each)
}

// entryStatements write search entries: all old ones are deleted before new ones are inserted, since
// they may exchange places.
func (p *pusher) entryStatements(ctx context.Context, batch []change) (list []libsql.Statement, err error) {
	var out, in []string
	for _, c := range batch {
		if c.Kind != entry {
			continue
		}
		if c.there {
			out = append(out, c.Key)
		}
		if c.here {
			in = append(in, c.Key)
		}
	}
	for part := range chunks(out, statementKeys) {
		old, err := readEntries(ctx, p.there, part)
		if err != nil {
			return nil, err
		}
		divideTerms(old, func(_ []named, terms string) {
			list = append(list, libsql.Statement{SQL: dropTerms, Args: []any{terms}})
		})
		list = append(list, libsql.Statement{SQL: dropNames, Args: []any{encode(part)}})
	}
	for part := range chunks(in, statementKeys) {
		fresh, err := p.readEntries(ctx, p.local, part, p.generation)
		if err != nil {
			return nil, err
		}
		divideTerms(fresh, func(entries []named, terms string) {
			rows := make([][4]any, len(entries))
			for i, e := range entries {
				rows[i] = [4]any{e.place, e.value, e.name, e.label}
			}
			list = append(list, libsql.Statement{SQL: putNames, Args: []any{encode(rows)}},
				libsql.Statement{SQL: putTerms, Args: []any{terms}})
		})
	}
	return list, nil
}

// divideTerms calls each with entries and their terms, which are longer than their names, in pieces of at most
// statementBytes where they are of several entries.
func divideTerms(entries []named, each func(entries []named, terms string)) {
	found := encode(terms(entries))
	if len(found) <= statementBytes || len(entries) == 1 {
		each(entries, found)
		return
	}
	half := len(entries) / 2
	divideTerms(entries[:half], each)
	divideTerms(entries[half:], each)
}

func terms(entries []named) [][2]any {
	rows := make([][2]any, len(entries))
	for i, e := range entries {
		rows[i] = [2]any{e.place, search.Terms(e.name)}
	}
	return rows
}

// hashesOf are the rows of a batch for putContent, without a hash where a record goes.
func hashesOf(batch []change) [][4]any {
	rows := make([][4]any, len(batch))
	for i, c := range batch {
		rows[i] = [4]any{c.Bucket(), int(c.Kind), c.Key, nil}
		if c.here {
			rows[i][3] = c.hash
		}
	}
	return rows
}

// encode returns JSON of slices of strings and numbers, which cannot fail.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return string(text)
}
