package handler

import (
	"strings"
	"unicode/utf8"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/handler/names"
)

const (
	maxNameRunes = 200
	defaultLimit = 5
	maxLimit     = 10
)

// searchLLPStatement finds the LLP with exactly the LLPIN ?1.
const searchLLPStatement = `
SELECT (SELECT id FROM release ORDER BY seq DESC LIMIT 1),
  (SELECT json_group_array(json_object('value', llpin, 'label', llp_name, 'type', 'llp'))
    FROM llp WHERE llpin = ?1)`

func (c *call) searchCompanies() answer {
	name, times, ok := c.queryParam("name")
	switch {
	case times == 0:
		return failed(InvalidQuery, "The parameter name is missing. Give it once, with 1 to 200 characters.")
	case times > 1:
		return failed(InvalidQuery, "The parameter name is given more than once. Give it once.")
	case !ok || !utf8.ValidString(name):
		return failed(InvalidQuery, "The parameter name is not percent-encoded UTF-8.")
	}
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n < 1 || n > maxNameRunes {
		return failed(InvalidQuery, "The parameter name has 1 to 200 characters, blanks around it not counted.")
	}
	limit, ok := c.limit()
	if !ok {
		return failed(InvalidQuery, "The parameter limit is an integer from 1 to 10, given at most once.")
	}
	result, err := c.Registry.Query(searchStatement, searchArgs(names.Current, name, limit))
	if isOlder(result, err) {
		result, err = c.Registry.Query(olderStatement(), searchArgs(names.Older, name, limit))
	}
	return listed(c.take(result, err))
}

// isOlder reports whether a search met an index that a program before this one built.
func isOlder(result *Result, err error) bool {
	if err != nil {
		return isOlderSchema(err)
	}
	const column = 2
	return result.Rows() == 1 && result.Columns > column && result.Row(0)[column].Int == 1
}

// isOlderSchema reports whether a statement failed because the database is of a schema version
// before this program's.
func isOlderSchema(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "no such column") || strings.Contains(err.Error(), "no such table"))
}

// limit reads the number of matches wanted.
func (c *call) limit() (int, bool) {
	value, times, ok := c.queryParam("limit")
	if times == 0 {
		return defaultLimit, true
	}
	if !ok || times > 1 {
		return 0, false
	}
	if value == "10" {
		return maxLimit, true
	}
	if len(value) != 1 || value[0] < '1' || value[0] > '9' {
		return 0, false
	}
	return int(value[0] - '0'), true
}

func (c *call) searchLLPs() answer {
	value, times, _ := c.queryParam("llpin")
	llpin, ok := ident.LLPIN(value)
	if times != 1 || !ok {
		return failed(InvalidLLPIN, "")
	}
	return listed(c.read(searchLLPStatement, text(llpin)))
}

// listed answers a search, whose first column after the release is the finished array.
func listed(row []Value, failure answer) answer {
	if row == nil {
		return failure
	}
	if row[0].Text == "[]" {
		return answer{outcome: charge.NotFound, data: []byte("[]")}
	}
	return found([]byte(row[0].Text))
}
