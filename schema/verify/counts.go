package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// tables are the tables whose rows each release counts, in the order of its columns, and the sort
// order of their rows for the digest.
var tables = []struct{ name, count, order string }{
	{"company", "companies", "cin"},
	{"llp", "llps", "llpin"},
	{"director", "directors", "din"},
	{"appointment", "appointments", "cin, din"},
	{"partner", "partners", "llpin, who"},
}

// checkRelease counts the records, and compares them with the newest release.
func (v *verifier) checkRelease() error {
	said := make([]int64, len(tables))
	err := v.each(`SELECT id, companies, llps, directors, appointments, partners FROM release ORDER BY seq DESC LIMIT 1`,
		func(row *sqlite3.Stmt) error {
			v.report.Release = row.ColumnText(0)
			for i := range said {
				said[i] = row.ColumnInt64(1 + i)
			}
			return nil
		})
	if err != nil {
		return err
	}
	if v.report.Release == "" {
		v.report.Unfinished = true
		v.find("there is no release: no import into this file was completed")
	}
	left, err := v.number(`SELECT (SELECT count(*) FROM unreleased) + (SELECT count(*) FROM search_pending)`)
	if err != nil {
		return err
	}
	if left > 0 {
		v.report.Unfinished = true
		v.find("there are changes after the release: run the interrupted import again")
	}
	for i, t := range tables {
		n, err := v.number(`SELECT count(*) FROM ` + t.name)
		if err != nil {
			return err
		}
		v.report.Tables = append(v.report.Tables, Table{Name: t.name, Records: n})
		if v.report.Release != "" && n != said[i] {
			v.find("table %s has %d records, release %s has %d", t.name, n, v.report.Release, said[i])
		}
	}
	for _, name := range []string{"search_name", "pincode"} {
		n, err := v.number(`SELECT count(*) FROM ` + name)
		if err != nil {
			return err
		}
		v.report.Tables = append(v.report.Tables, Table{Name: name, Records: n})
	}
	return nil
}

// countUnlinked counts dangling references. Each query looks up keys in key order. Without the grouping,
// SQLite would look up companies in the order of directors, which takes five times as long.
func (v *verifier) countUnlinked() error {
	v.report.Unlinked = map[string]int64{}
	for what, query := range map[string]string{
		"appointments without their company":  `SELECT coalesce(sum(n), 0) FROM (SELECT cin, count(*) AS n FROM appointment GROUP BY cin) a WHERE NOT EXISTS (SELECT 1 FROM company WHERE cin = a.cin)`,
		"appointments without their director": `SELECT count(*) FROM appointment a WHERE NOT EXISTS (SELECT 1 FROM director WHERE din = a.din)`,
		"partners without their LLP":          `SELECT count(*) FROM partner p WHERE NOT EXISTS (SELECT 1 FROM llp WHERE llpin = p.llpin)`,
	} {
		n, err := v.number(query)
		if err != nil {
			return err
		}
		if n > 0 {
			v.report.Unlinked[what] = n
		}
	}
	return nil
}

// checkStructure lets SQLite check the file: pages, indexes, and the format of rows.
func (v *verifier) checkStructure() error {
	return v.each(`PRAGMA integrity_check(20)`, func(row *sqlite3.Stmt) error {
		if text := row.ColumnText(0); text != "ok" {
			v.find("SQLite: %s", text)
		}
		return nil
	})
}

// checkSums compares the hashes of the records, where a push has made them, with their sums.
func (v *verifier) checkSums() error {
	if filled, err := v.number(`SELECT count(*) FROM content_whole`); err != nil || filled == 0 {
		return err
	}
	newer := ""
	if has, err := v.number(`SELECT count(*) FROM sqlite_schema WHERE name = 'content_newer'`); err != nil {
		return err
	} else if has > 0 { // since version 2 of the schema
		newer = ` UNION ALL SELECT bucket >> 20, records, low, high FROM content_newer`
	}
	differing := `WITH now AS (
  SELECT part, sum(records) AS records, sum(low) AS low, sum(high) AS high FROM (
    SELECT bucket >> 20 AS part, count(*) AS records, sum(hash & 4294967295) AS low, sum(hash >> 32) AS high FROM content GROUP BY 1` +
		newer + `)
  GROUP BY part HAVING sum(records) > 0)
SELECT count(*) FROM (SELECT * FROM now EXCEPT SELECT part, records, low, high FROM content_part UNION ALL
  SELECT part, records, low, high FROM content_part WHERE part NOT IN (SELECT part FROM now) AND records > 0)`
	n, err := v.number(differing)
	if err != nil {
		return err
	}
	if n > 0 {
		v.find("the hashes of the records and their sums differ in %d of 4096 parts: push the release from the file that it was made of", n)
	}
	return nil
}

// digest makes a digest of each table with a count.
func (v *verifier) digest() error {
	for i, t := range tables {
		sum := sha256.New()
		var cell []byte
		err := v.each(fmt.Sprintf(`SELECT * FROM %s ORDER BY %s`, t.name, t.order), func(row *sqlite3.Stmt) error {
			for column := range row.ColumnCount() {
				text := row.ColumnRawText(column)
				cell = binary.AppendUvarint(append(cell[:0], byte(row.ColumnType(column))), uint64(len(text)))
				sum.Write(append(cell, text...))
			}
			return nil
		})
		if err != nil {
			return err
		}
		v.report.Tables[i].Digest = hex.EncodeToString(sum.Sum(nil))
	}
	return nil
}
