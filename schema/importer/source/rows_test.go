package source

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type readRow struct {
	line   int
	fields []string
	err    string
}

func readRows(t *testing.T, text string) (list []readRow) {
	t.Helper()
	r := newRowReader(strings.NewReader(text))
	for {
		row, err := r.next()
		if err == io.EOF {
			return list
		}
		got := readRow{line: row.line}
		if err != nil {
			require.True(t, errors.Is(err, errOpenQuote) || errors.Is(err, errRowTooLong), "%v", err)
			got.err = err.Error()
		} else {
			got.fields = append(got.fields, row.fields...)
		}
		list = append(list, got)
	}
}

func TestRowsAreSplit(t *testing.T) {
	require.Equal(t, []readRow{
		{1, []string{"a", "b", ""}, ""},
		{2, []string{`x,"y"`, "", "z"}, ""},
		{5, []string{"two\nlines", "end"}, ""},
		{7, []string{` a "b" c`, "dx"}, ""},
	}, readRows(t, "a,b,\r\n\"x,\"\"y\"\"\",,z\n\n  \n\"two\nlines\",end\n a \"b\" c,\"d\"x"))
	require.Empty(t, readRows(t, ""))
	require.Empty(t, readRows(t, "\n\r\n"))
}

// TestABlankBeforeAQuotedFieldIsNoPartOfIt, as of programs that write one after each separator: names kept their quotes, and values with a
// separator became several. Quotes that do not enclose all of a value are a part of it, and the lines after one that is never closed stay rows.
func TestABlankBeforeAQuotedFieldIsNoPartOfIt(t *testing.T) {
	require.Equal(t, []readRow{
		{1, []string{"1", "A, B", "c"}, ""},
		{2, []string{"2", `A "B"`, "C,\"", "d"}, ""},
		{3, []string{"3", "A "}, ""},
		{4, []string{"4", ` "A" & B`, ` "C`}, ""},
		{5, []string{" 5", "D, E ", "f"}, ""},
		{6, []string{"", ""}, ""},
	}, readRows(t, "1, \"A, B\",c\n2,  \"A \"\"B\"\"\", \"C,\"\"\",d\n3, \"A\" \n4, \"A\" & B, \"C\n 5, \"D, E\" ,f\n \"\", \"\"\n"))
}

// TestAValueOfSeveralLinesMayHaveABlankBeforeItsQuote: the last value of a row lost all but its first line. One that is never closed is a
// part of its value, and the lines after it stay rows.
func TestAValueOfSeveralLinesMayHaveABlankBeforeItsQuote(t *testing.T) {
	rows := newRowReader(strings.NewReader("1, \"a\nb\"\n2,\"c, \"\"\"\n3, \"d\n4,e\n5,\"f\ng\"\n6, \"h"))
	rows.columns, rows.needed = 2, 2
	for _, want := range [][]string{{"1", "a\nb"}, {"2", `c, "`}, {"3", ` "d`}, {"4", "e"}, {"5", "f\ng"}, {"6", ` "h`}} {
		r, err := rows.next()
		require.NoError(t, err)
		require.Equal(t, want, r.fields)
	}
	require.True(t, rows.cutOff)
	_, err := rows.next()
	require.ErrorIs(t, err, io.EOF)
}

// TestAQuoteAfterABlankTakesNoRow: such a quote may be a stray one, and what follows a row as it should be.
func TestAQuoteAfterABlankTakesNoRow(t *testing.T) {
	for _, text := range []string{"1, \"SHANTI\n2,PLOT 12\"", "1, \"SHANTI\n2,PLOT 12\n3\"", "1, \"SHANTI\n2,PLOT, 12\"", "1, \"a\nb\"\n2,c"} {
		rows := newRowReader(strings.NewReader(text))
		rows.columns, rows.needed = 2, 2
		first, err := rows.next()
		require.NoError(t, err)
		if text[4] == 'S' {
			require.Equal(t, []string{"1", ` "SHANTI`}, first.fields)
		}
		second, err := rows.next()
		require.NoError(t, err)
		require.Equal(t, "2", second.fields[0])
	}
}

// TestABackslashBeforeADoubledQuoteIsPartOfTheValue (RFC 4180), unless the value had a quote behind a backslash before.
func TestABackslashBeforeADoubledQuoteIsPartOfTheValue(t *testing.T) {
	fields := []string{`B\", WARD 3`, "C\\\"\nD", `E\"`}
	require.Equal(t, []readRow{
		{1, []string{`B\", WARD 3`, "C\\\"\nD", `E\"`}, ""},
		{3, []string{`VILLA "A"`, "two \"A\nlines B\"", "c"}, ""},
	}, readRows(t, JoinFields(fields)+"\n"+`"VILLA \"A\"","two \"A`+"\n"+`lines B\"",c`+"\n"))
}

// TestAQuoteBehindABackslashIsPartOfTheValue, as some databases export it, unless the value ends there.
func TestAQuoteBehindABackslashIsPartOfTheValue(t *testing.T) {
	require.Equal(t, []readRow{
		{1, []string{`12" PIPES`, "d"}, ""},
		{2, []string{"two \"big\" and\nlines", "e"}, ""},
		{4, []string{"two \"big\"\nlines", "f"}, ""},
		{6, []string{`C:\`, "g"}, ""},
		{7, []string{"h", `C:\`}, ""},
		{8, []string{"i", `C:\`}, ""},
		{9, []string{`VILLA "A"`, `"B"`, `C:\"`}, ""},
		{10, []string{"two\nlines \"A\"", "j"}, ""},
	}, readRows(t, `"12\" PIPES",d`+"\n"+`"two \"big\" and`+"\nlines\",e\n"+`"two ""big""`+"\nlines\",f\n"+`"C:\",g`+"\n"+`h,"C:\"`+"\r\n"+`i,"C:\"`+"\n"+
		`"VILLA \"A\"","\"B\"","C:\"""`+"\n\"two\n"+`lines \"A\"",j`+"\n"))
}

func TestStrayQuoteCostsOneRow(t *testing.T) {
	text := "a,\"b\n" + strings.Repeat("c,d\n", 40)
	got := readRows(t, text)
	require.Equal(t, readRow{1, nil, errOpenQuote.Error()}, got[0])
	require.Len(t, got, 41)
	for i, row := range got[1:] {
		require.Equal(t, readRow{i + 2, []string{"c", "d"}, ""}, row)
	}
}

// TestAQuoteInAnUnquotedFieldOpensNone, such as of inches, nor does one that makes too long a row of several.
func TestAQuoteInAnUnquotedFieldOpensNone(t *testing.T) {
	got := readRows(t, "a,b\n12\" PIPES,d\ne,f\n")
	require.Equal(t, []readRow{{1, []string{"a", "b"}, ""}, {2, []string{`12" PIPES`, "d"}, ""}, {3, []string{"e", "f"}, ""}}, got)

	rows := newRowReader(strings.NewReader("a,\"b\nc,d\n\"e,f\n\"g\nh\",i,\n"))
	rows.columns, rows.needed = 2, 2
	_, err := rows.next()
	require.ErrorIs(t, err, errOpenQuote, "both quotes together would take the row between them")
	for _, want := range [][]string{{"c", "d"}, nil, {"g\nh", "i", ""}} {
		r, err := rows.next()
		if want == nil {
			require.ErrorIs(t, err, errOpenQuote)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, r.fields)
	}
}

// TestStrayQuotesInOneColumnDoNotJoinTheirRows: the first row would get the values of the last, and all but the first be lost.
func TestStrayQuotesInOneColumnDoNotJoinTheirRows(t *testing.T) {
	for name, second := range map[string]string{"stray": `2,"DEF,w`, "closed": `2,"DEF",w`} {
		t.Run(name, func(t *testing.T) {
			rows := newRowReader(strings.NewReader("1,\"ABC,v\n5,GHI,x\n" + second + "\n3,\"two\nlines\" ,y\n"))
			rows.columns, rows.needed = 3, 3
			var got []string
			for {
				r, err := rows.next()
				if err == io.EOF {
					break
				}
				if err != nil {
					require.ErrorIs(t, err, errOpenQuote)
					continue
				}
				got = append(got, strings.Join(r.fields, "|"))
			}
			want := []string{"5|GHI|x", "2|DEF|w", "3|two\nlines |y"}
			if name == "stray" {
				want = slices.Delete(want, 1, 2)
			}
			require.Equal(t, want, got)
		})
	}
}

// TestARowOfSeveralLinesMayLackWhatIsNotRead, as one of a single line may.
func TestARowOfSeveralLinesMayLackWhatIsNotRead(t *testing.T) {
	rows := newRowReader(strings.NewReader("a,\"b\nc\"\nd,e\n"))
	rows.columns, rows.needed = 3, 2
	for _, want := range [][]string{{"a", "b\nc"}, {"d", "e"}} {
		r, err := rows.next()
		require.NoError(t, err)
		require.Equal(t, want, r.fields)
	}
}

// TestARowOfSeveralLinesHasTheLimitOfOne.
func TestARowOfSeveralLinesHasTheLimitOfOne(t *testing.T) {
	half := strings.Repeat("x", maxRowBytes/2)
	got := readRows(t, "a,\"b\n"+half+"\n"+half+"\nc\",d\n")
	require.Equal(t, readRow{1, nil, errOpenQuote.Error()}, got[0])
	require.Equal(t, readRow{2, []string{half}, ""}, got[1])
}

func TestStrayQuoteAtTheEnd(t *testing.T) {
	got := readRows(t, "a,b\nc,\"d\ne,f\n")
	require.Equal(t, []readRow{{1, []string{"a", "b"}, ""}, {2, nil, errOpenQuote.Error()}, {3, []string{"e", "f"}, ""}}, got)
}

func TestLongRowCostsOneRow(t *testing.T) {
	long := strings.Repeat("x", 5*maxRowBytes)
	for name, text := range map[string]string{
		"alone":          "a,b\n" + long + "\nc,d\n",
		"after a quote":  "a,b\n" + long + "\nc,d\n",
		"at the end":     "a,b\n" + long,
		"just too long":  "a,b\n" + strings.Repeat("y", maxRowBytes) + "\nc,d\n", // with its end
		"longest taken":  "a,b\n" + strings.Repeat("y", maxRowBytes-1) + "\nc,d\n",
		"in open quotes": "a,b\n\"" + long + "\n\"c\",d\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := readRows(t, text)
			require.Equal(t, []string{"a", "b"}, got[0].fields)
			if name == "longest taken" {
				require.Empty(t, got[1].err)
			} else {
				require.Equal(t, readRow{2, nil, errRowTooLong.Error()}, got[1])
			}
			if name != "at the end" {
				require.Equal(t, readRow{3, []string{"c", "d"}, ""}, got[2])
			}
		})
	}
}

func TestLongRowBehindAnOpenQuoteIsNotLost(t *testing.T) {
	got := readRows(t, "a,\"b\n"+strings.Repeat("x", 2*maxRowBytes)+"\nc,d\n")
	require.Equal(t, []readRow{
		{1, nil, errOpenQuote.Error()}, {2, nil, errRowTooLong.Error()}, {3, []string{"c", "d"}, ""},
	}, got)
}

func TestARowHasAtMostSoManyLines(t *testing.T) {
	text := func(lines int) string { return "\"" + strings.Repeat("x\n", lines-1) + "\",b\n" }
	require.Len(t, readRows(t, text(maxRowLines)), 1)
	require.Equal(t, readRow{1, nil, errOpenQuote.Error()}, readRows(t, text(maxRowLines+1))[0])
}

func TestTheBeginningOfALongRowIsKept(t *testing.T) {
	r, err := newRowReader(strings.NewReader("a,b" + strings.Repeat("x", 2*maxRowBytes))).next()
	require.ErrorIs(t, err, errRowTooLong)
	require.True(t, strings.HasPrefix(r.raw, "a,bx"), r.raw)
	require.Less(t, len(r.raw), maxRowBytes)
}

// FuzzRowsOfWellFormedCSV holds the reader against encoding/csv.
func FuzzRowsOfWellFormedCSV(f *testing.F) {
	f.Add("a", `b "c"`, "d\ne", "")
	f.Add("", "", "", "")
	f.Add(`"`, "é,", " ", "\r")
	f.Add(`;,`, `,;`, "", "")
	f.Add(`B\", WARD 3`, "C\\\"\nD", `,\`, `\"`)
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		rows := [][]string{{"x" + a, b, c, d}, {"second", d + "!", "", a}}
		require.NoError(t, w.WriteAll(rows))
		if out.Len() > maxRowBytes/2 || strings.Count(out.String(), "\n") > maxRowLines/2 {
			return
		}
		reader := csv.NewReader(bytes.NewReader(out.Bytes()))
		want, err := reader.ReadAll()
		require.NoError(t, err)
		var got [][]string
		for _, row := range readRows(t, out.String()) {
			require.Empty(t, row.err)
			for i, field := range row.fields { // encoding/csv joins line ends, we keep the row's text
				row.fields[i] = strings.ReplaceAll(field, "\r\n", "\n")
			}
			got = append(got, row.fields)
		}
		if strings.Contains(a+b+c+d, "\r") {
			return // encoding/csv reads these differently, and no source has them
		}
		require.Equal(t, want, got)
	})
}

func FuzzRows(f *testing.F) {
	f.Add("a,\"b\nc,d\n")
	f.Add("\"\"\"\n,\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for _, row := range readRows(t, text) {
			require.Greater(t, row.line, last)
			last = row.line
		}
	})
}

func TestJoinedFieldsAreReadBack(t *testing.T) {
	fields := []string{"a", `b"c`, "d,e", "f\ng", ""}
	got := readRows(t, JoinFields(fields)+"\n")
	require.Equal(t, fields, got[0].fields)
}
