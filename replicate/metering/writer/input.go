package writer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/julienschmidt/httprouter"
)

// Limits of texts that people write, in characters: they are shown in tables, pages and
// logs.
const (
	maxName = 200
	maxNote = 500
)

// checkLine refuses text that is not one printable line of at most limit characters.
func checkLine(what, text string, limit int) error {
	if utf8.RuneCountInString(text) > limit {
		return fmt.Errorf("%w: %s has at most %d characters", ErrMalformed, what, limit)
	}
	if !Printable(text) {
		return fmt.Errorf("%w: %s holds a character that can't be printed", ErrMalformed, what)
	}
	return nil
}

// Printable reports whether text can be shown unchanged: it has no control characters that
// a terminal would obey or that would break a table.
func Printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable)
}

// unprintable includes the characters that change the direction of the text around them. It
// excludes the joiners, which several Indian scripts need within words.
func unprintable(c rune) bool {
	const joiner, nonJoiner = '\u200d', '\u200c'
	return !unicode.IsPrint(c) && c != joiner && c != nonJoiner
}

// checkName checks a name; a needed one must not be empty.
func checkName(what, name string, needed bool) error {
	if needed && strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: %s is empty", ErrMalformed, what)
	}
	return checkLine(what, name, maxName)
}

// checkEmail refuses what is neither empty nor an e-mail address.
func checkEmail(address string) error {
	if address != "" && CanonicalEmail(address) == "" {
		return fmt.Errorf("%w: that is not an e-mail address", ErrMalformed)
	}
	return nil
}

// readBody reads an operator's JSON. Unknown fields are refused: a misspelt field must not
// look as if it had been changed.
func readBody(r *http.Request, into any) error {
	d := json.NewDecoder(io.LimitReader(r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: something follows the JSON value", ErrMalformed)
	}
	return nil
}

// readID reads the id of an account or a key from the path.
func readID(what string, p httprouter.Params) (int64, error) {
	id, err := strconv.ParseInt(p.ByName("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, notFound(what, strconv.Quote(p.ByName("id")))
	}
	return id, nil
}
