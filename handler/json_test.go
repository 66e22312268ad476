package handler

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTextIsJSON(t *testing.T) {
	for _, s := range []string{
		"", "plain", "plain and long enough for two", "the quote comes last\"", "\\starts badly", "eight by\teight by", `quote " and \ backslash`, "\x00\x01\x1f\n\r\t", "देवनागरी €", "bad \xff\xfe utf-8 \xe2\x82", "\u2028",
	} {
		w := writer{}
		w.text(s)
		var got string
		require.NoError(t, json.Unmarshal(w.buf, &got), "%q gave %s", s, w.buf)
		require.Equal(t, strings.ToValidUTF8(s, "\uFFFD"), collapse(got, s))
	}
}

// collapse replaces a run of U+FFFD by one: the writer writes one for each invalid byte,
// ToValidUTF8 one for a run of them.
func collapse(got, source string) string {
	if utf8.ValidString(source) {
		return got
	}
	for strings.Contains(got, "\uFFFD\uFFFD") {
		got = strings.ReplaceAll(got, "\uFFFD\uFFFD", "\uFFFD")
	}
	return got
}

func FuzzText(f *testing.F) {
	f.Add("a\"b\\c\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		w := writer{}
		w.text(s)
		var got string
		require.NoError(t, json.Unmarshal(w.buf, &got))
		if utf8.ValidString(s) {
			require.Equal(t, s, got)
		}
	})
}

func TestTimestampAgreesWithPackageTime(t *testing.T) {
	check := func(second int64) {
		w := &writer{}
		w.timestamp(Value{Kind: Integer, Int: second})
		require.Equal(t, time.Unix(second, 0).UTC().Format(`"2006-01-02T15:04:05Z"`), string(w.buf))
		require.False(t, w.damaged)
	}
	// The first and last second of days of 10,000 years, in steps that reach each day of the
	// year.
	for second := int64(firstSecond); second < lastSecond; second += 24 * 60 * 60 * 13 {
		check(second)
		check(second + 24*60*60 - 1)
	}
	for _, year := range []int{0, 1, 4, 100, 400, 1900, 1999, 2000, 2024, 2100, 9999} {
		for _, day := range [][2]int{{1, 1}, {2, 28}, {2, 29}, {3, 1}, {12, 31}} {
			check(time.Date(year, time.Month(day[0]), day[1], 23, 59, 59, 0, time.UTC).Unix())
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		check(firstSecond + random.Int64N(lastSecond-firstSecond+1))
	}
}

func TestTimestampRefusesYearsWithoutFourDigits(t *testing.T) {
	for _, v := range []Value{{Kind: Integer, Int: firstSecond - 1}, {Kind: Integer, Int: 253402300800}, text("now")} {
		w := &writer{}
		w.timestamp(v)
		require.True(t, w.damaged)
	}
	w := &writer{}
	w.timestamp(Value{})
	require.Equal(t, "null", string(w.buf))
}
