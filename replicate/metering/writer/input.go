package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
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
		return fmt.Errorf("%w: %s", ErrMalformed, bodyFault(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: something follows the JSON value", ErrMalformed)
	}
	return nil
}

// bodyFault says what is wrong with a body, without the words of the decoder for types of Go.
func bodyFault(err error) string {
	unknown, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	var wrongType *json.UnmarshalTypeError
	var notTime *time.ParseError
	switch {
	case isUnknown:
		return "there is no field " + unknown
	case errors.As(err, &wrongType) && wrongType.Field == "":
		return "the body is a JSON object, not: " + wrongType.Value
	case errors.As(err, &wrongType):
		return fmt.Sprintf("the field %s is %s, not: %s", strings.ToLower(wrongType.Field), jsonName(wrongType.Type), wrongType.Value)
	case errors.As(err, &notTime):
		return strconv.Quote(notTime.Value) + " is not a time such as 2026-01-31T00:00:00Z"
	case strings.HasPrefix(err.Error(), "Time.UnmarshalJSON"):
		return "a time is a string such as 2026-01-31T00:00:00Z"
	case err == io.EOF:
		return "there is no body, which is a JSON object"
	case err == io.ErrUnexpectedEOF:
		return fmt.Sprintf("the body ends within its JSON object, or is longer than %d bytes", maxBody)
	}
	return "the body is not JSON: " + err.Error()
}

// jsonName is what a value of a type is called in JSON.
func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "an array"
	case reflect.String:
		return "a string"
	}
	return "an object"
}

// readID reads the id of an account or a key from the path.
func readID(what string, p httprouter.Params) (int64, error) {
	text := p.ByName("id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || decimal(id) != text { // the audit log has the path
		return 0, notFound(what, strconv.Quote(text))
	}
	return id, nil
}
