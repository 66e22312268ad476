package verify

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"regedge/schema"
)

// Depth says how much is read.
type Depth bool

const (
	Quick    Depth = false
	Thorough Depth = true
)

// Report lists the findings.
type Report struct {
	Release string  `json:"release"` // the newest; empty if there is none
	Tables  []Table `json:"tables"`
	// Unlinked counts records that refer to a record that the registry lacks, by kind. They are kept
	// until that record is imported, and no lookup returns them. Thorough only.
	Unlinked map[string]int64 `json:"unlinked,omitempty"`
	Problems []string         `json:"problems"` // empty if the registry is whole
	// Unfinished means that there is no release, or that there are changes after it.
	Unfinished bool          `json:"-"`
	Elapsed    time.Duration `json:"-"`
}

// Table is one table of the registry.
type Table struct {
	Name    string `json:"name"`
	Records int64  `json:"records"`
	Digest  string `json:"digest,omitempty"` // SHA-256 of all rows, in hexadecimal. Thorough only
}

// Whole reports whether nothing is wrong.
func (r *Report) Whole() bool { return len(r.Problems) == 0 }

// File verifies the registry in the file at path, which is only read. It calls progress, unless that is nil, with the
// number of finished steps before each one. It fails if the file could not be checked: it does not exist, it is another
// database, or ctx is done.
func File(ctx context.Context, path string, depth Depth, progress func(done, total int64)) (report Report, err error) {
	started := time.Now()
	db, err := schema.OpenReadOnly(path)
	if err != nil {
		return report, err
	}
	defer db.Close()
	if err := schema.CheckReadable(ctx, db, schema.Registry); err != nil {
		return report, fmt.Errorf("verify %s: %w", path, err)
	}
	held, err := db.Conn(ctx)
	if err != nil {
		return report, fmt.Errorf("verify %s: %w", path, err)
	}
	defer held.Close()
	report, err = onConnection(ctx, held, depth, progress)
	report.Elapsed = time.Since(started)
	if err != nil {
		return report, fmt.Errorf("verify %s: %w", path, err)
	}
	return report, nil
}

// onConnection verifies the database of a connection in one transaction.
func onConnection(ctx context.Context, held *sql.Conn, depth Depth, progress func(done, total int64)) (Report, error) {
	v := verifier{report: Report{Problems: []string{}}}
	err := held.Raw(func(c any) error {
		v.conn = c.(driver.Conn).Raw()
		defer v.conn.SetInterrupt(v.conn.SetInterrupt(ctx))
		if err := v.conn.Exec(`BEGIN`); err != nil {
			return err
		}
		err := v.run(depth, progress)
		if end := v.conn.Exec(`ROLLBACK`); err == nil {
			err = end
		}
		return err
	})
	return v.report, err
}

// verifier is one run.
type verifier struct {
	conn   *sqlite3.Conn
	report Report
	sample []string // CINs and LLPINs, spread over the registry
}

func (v *verifier) run(depth Depth, progress func(done, total int64)) error {
	steps := []func() error{v.checkRelease, v.checkSearch, v.checkSample}
	if depth == Thorough {
		steps = []func() error{
			v.checkStructure, v.checkRelease, v.checkSearch, v.checkTerms, v.checkDerived, v.checkSums, v.countUnlinked, v.digest,
		}
	}
	for i, step := range steps {
		if progress != nil {
			progress(int64(i), int64(len(steps)))
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// find notes a problem.
func (v *verifier) find(format string, args ...any) {
	v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
}

// findAll notes how many problems of one kind there are, and the first.
func (v *verifier) findAll(n int64, first, what string) {
	if n > 0 {
		v.find("%s: %d, the first is %s", what, n, first)
	}
}

// each calls do for each row of a query with texts for parameters.
func (v *verifier) each(query string, do func(*sqlite3.Stmt) error, args ...string) error {
	rows, _, err := v.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for i, arg := range args {
		if err := rows.BindText(i+1, arg); err != nil {
			return err
		}
	}
	for rows.Step() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// number runs a query that returns one integer.
func (v *verifier) number(query string) (n int64, err error) {
	err = v.each(query, func(row *sqlite3.Stmt) error {
		n = row.ColumnInt64(0)
		return nil
	})
	return n, err
}
