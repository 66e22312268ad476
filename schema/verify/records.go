package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler/directors"
	"regedge/handler/names"
	"regedge/schema/search"
)

// checkSearch walks companies and LLPs in parallel with the search entries, by CIN and LLPIN.
func (v *verifier) checkSearch() error {
	entries, _, err := v.conn.Prepare(`SELECT value FROM search_name ORDER BY value`)
	if err != nil {
		return err
	}
	defer entries.Close()
	more := entries.Step()
	var missing, alone int64
	var firstMissing, firstAlone string
	skipTo := func(value string) {
		for more && (value == "" || entries.ColumnText(0) < value) {
			if alone++; alone == 1 {
				firstAlone = entries.ColumnText(0)
			}
			more = entries.Step()
		}
	}
	const values = `SELECT cin FROM company UNION ALL SELECT llpin FROM llp ORDER BY 1`
	walked, every := 0, v.sampleEvery()
	err = v.each(values, func(row *sqlite3.Stmt) error {
		value := row.ColumnText(0)
		if walked++; walked%every == 0 {
			v.sample = append(v.sample, value)
		}
		skipTo(value)
		if more && entries.ColumnText(0) == value {
			more = entries.Step()
			return nil
		}
		named, err := v.hasForm(value)
		if err == nil && named {
			if missing++; missing == 1 {
				firstMissing = value
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	skipTo("")
	v.findAll(missing, firstMissing, "companies and LLPs that the search does not have")
	v.findAll(alone, firstAlone, "entries of the search without a company or LLP")
	return entries.Err()
}

// hasForm reports whether the name of a company or LLP is searchable: a name of signs alone is not.
func (v *verifier) hasForm(value string) (named bool, err error) {
	one, _, err := v.conn.Prepare(`SELECT company_name FROM company WHERE cin = ?1 UNION ALL SELECT llp_name FROM llp WHERE llpin = ?1`)
	if err != nil {
		return false, err
	}
	defer one.Close()
	if err := one.BindText(1, value); err != nil {
		return false, err
	}
	if one.Step() {
		named = names.Name(one.ColumnText(0)) != ""
	}
	return named, one.Err()
}

// derived checks the derived columns of companies: directors lists and districts. If the directory
// lacks the pincode, the district is the one that its source named.
var derived = `SELECT cin, directors IS coalesce(` + directors.Of("company.cin") + `, ''),
  district IS coalesce((SELECT p.district FROM pincode p WHERE p.pincode = company.pincode), district) FROM company`

func (v *verifier) checkDerived() error { return v.compareDerived(derived) }

func (v *verifier) compareDerived(query string, args ...string) error {
	var lists, districts int64
	var firstList, firstDistrict string
	err := v.each(query, func(row *sqlite3.Stmt) error {
		if row.ColumnInt64(1) == 0 {
			if lists++; lists == 1 {
				firstList = row.ColumnText(0)
			}
		}
		if row.ColumnInt64(2) == 0 {
			if districts++; districts == 1 {
				firstDistrict = row.ColumnText(0)
			}
		}
		return nil
	}, args...)
	v.findAll(lists, firstList, "companies whose directors list differs from their appointments")
	v.findAll(districts, firstDistrict, "companies whose district differs from that of their pincode")
	return err
}

// sample is the minimal number of companies and LLPs that a quick check examines closely, with their search
// entries: a fault in one of 300 is found with a probability of 96%.
const sample = 1000

// sampleEvery returns n such that every n-th company or LLP is in the sample.
func (v *verifier) sampleEvery() int {
	return max(1, int(v.report.Tables[0].Records+v.report.Tables[1].Records)/sample)
}

// checkSample checks the companies of the sample, and the sample's search entries.
func (v *verifier) checkSample() error {
	list, err := json.Marshal(v.sample)
	if err != nil {
		return err
	}
	if err := v.compareDerived(derived+` WHERE cin IN (SELECT value FROM json_each(?1))`, string(list)); err != nil {
		return err
	}
	var places []int64
	err = v.each(`SELECT place FROM search_name WHERE value IN (SELECT value FROM json_each(?1))`, func(row *sqlite3.Stmt) error {
		places = append(places, row.ColumnInt64(0))
		return nil
	}, string(list))
	if err != nil {
		return err
	}
	return v.checkPlaces(places)
}

// checkPlaces looks for entries in the index by a term of their own.
func (v *verifier) checkPlaces(places []int64) error {
	name, _, err := v.conn.Prepare(`SELECT value, name FROM search_name WHERE place = ?1`)
	if err != nil {
		return err
	}
	defer name.Close()
	found, _, err := v.conn.Prepare(`SELECT 1 FROM search_index WHERE search_index MATCH ?1 AND rowid = ?2`)
	if err != nil {
		return err
	}
	defer found.Close()
	var lost int64
	var first string
	for _, place := range places {
		if err := name.BindInt64(1, place); err != nil {
			return err
		}
		if !name.Step() {
			return name.Err()
		}
		value, terms := name.ColumnText(0), append([]string{""}, strings.Fields(search.Terms(name.ColumnText(1)))...)
		if err := name.Reset(); err != nil {
			return err
		}
		if err := found.BindText(1, `"`+terms[len(terms)-1]+`"`); err != nil {
			return err
		}
		if err := found.BindInt64(2, place); err != nil {
			return err
		}
		if !found.Step() {
			if err := found.Err(); errors.Is(err, sqlite3.INTERRUPT) {
				return err
			}
			if lost++; lost == 1 {
				first = value
			}
		}
		if err := found.Reset(); err != nil {
			return err
		}
	}
	v.findAll(lost, first, fmt.Sprintf("of %d names of a sample, those that the index does not find", len(places)))
	return nil
}

// checkTerms compares the whole index with the names. It needs a temporary table, which query_only
// would forbid; the file stays read-only.
func (v *verifier) checkTerms() error {
	if err := v.conn.Exec(`PRAGMA query_only = off`); err != nil {
		return err
	}
	if err := search.Check(v.conn); err != nil {
		if errors.Is(err, sqlite3.INTERRUPT) {
			return err
		}
		v.find("search: %v", err)
	}
	return v.conn.Exec(`PRAGMA query_only = on`)
}
