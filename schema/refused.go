package schema

import (
	"errors"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Refused reports whether err is a database's refusal of what a statement would write: a check, a
// type, a key or a trigger. It would be refused again, and the transaction can't have been committed.
// All other errors, such as a full disk, say nothing about the content. Servers send the text alone.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, sqlite3.CONSTRAINT) || errors.Is(err, sqlite3.MISMATCH) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, " constraint failed") || strings.Contains(text, "cannot store ") ||
		strings.Contains(text, "datatype mismatch")
}
