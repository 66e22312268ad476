package cli

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// valueReaders read numbers, days and durations. Kong's own readers would take 0100 for 64, and name
// Go's types and layouts in their errors.
var valueReaders = []kong.Option{
	kong.KindMapper(reflect.Int, wholeNumber),
	kong.KindMapper(reflect.Int64, wholeNumber),
	kong.KindMapper(reflect.Uint64, value(digits, func(text string) (any, error) {
		return strconv.ParseUint(text, 10, 64)
	})),
	kong.TypeMapper(reflect.TypeFor[time.Time](), value("a day, YYYY-MM-DD", func(text string) (any, error) {
		return time.Parse(time.DateOnly, text)
	})),
	kong.TypeMapper(reflect.TypeFor[time.Duration](), value(durations, func(text string) (any, error) {
		return time.ParseDuration(text)
	})),
}

// inHours says how many hours a number of days is, which a duration can't have, or nothing of other texts.
func inHours(text string) string {
	days, err := strconv.ParseUint(strings.TrimSuffix(text, "d"), 10, 16)
	if err != nil || !strings.HasSuffix(text, "d") {
		return ""
	}
	return fmt.Sprintf(": %d days are %dh", days, days*24)
}

const (
	digits    = "a whole number in digits, such as 1000"
	durations = "a duration, such as 36h, 10m or 5s"
)

// wholeNumber reads an int or an int64.
var wholeNumber = value(digits, func(text string) (any, error) {
	return strconv.ParseInt(text, 10, 64)
})

// value makes a reader for values that words describes, using parse.
func value(words string, parse func(string) (any, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("a", &text); err != nil {
			return err
		}
		read, err := parse(text)
		if err != nil {
			if words == durations {
				return fmt.Errorf("expected %s, but got %q%s", words, text, inHours(text))
			}
			return fmt.Errorf("expected %s, but got %q", words, text)
		}
		target.Set(reflect.ValueOf(read).Convert(target.Type()))
		return nil
	}
}
