package source

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func split(t *testing.T, text string) (list []string) {
	t.Helper()
	s := newSplitter(strings.NewReader(text))
	for {
		object, line, err := s.next()
		switch {
		case err == io.EOF:
			return list
		case err != nil:
			require.True(t, errors.Is(err, errStray) || errors.Is(err, errUnended) || errors.Is(err, errTooBig), "%v", err)
			list = append(list, err.Error())
		default:
			require.Positive(t, line)
			list = append(list, string(object))
		}
	}
}

func TestDocumentsAreSplit(t *testing.T) {
	want := []string{`{"a":"}\"{"}`, `{"b":[{"c":1}]}`}
	for name, sign := range map[string]string{"a line each": "\n", "behind one another": "", "array": ",\n ", "appended files": "\n" + string(utf8Mark)} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(want, sign)
			if name == "array" {
				text = "[" + text + "]"
			}
			require.Equal(t, want, split(t, text))
		})
	}
	require.Equal(t, []string{errStray.Error(), `{}`, errUnended.Error()}, split(t, "oops {}\n{}\n{\"a\":"))
}

// TestADocumentThatIsCutOffCostsItsLine where each has one.
func TestADocumentThatIsCutOffCostsItsLine(t *testing.T) {
	const good = "{\"a\":{\"b\":1}}"
	for name, bad := range map[string]string{"cut": `{"a":{"b"`, "a quote too many": `{"a":{""b":1}}`, "a quote too few": `{"a":{b":1}}`, "a brace too few": `{"a":{"b":1}`} {
		text := strings.Repeat(good+"\n", 3) + bad + "\n" + strings.Repeat(good+"\n", 200)
		got := split(t, text)
		require.GreaterOrEqual(t, len(got), 203, name)
		require.Equal(t, []string{good, good, good}, got[:3], name)
		require.Equal(t, slices.Repeat([]string{good}, 200), got[len(got)-200:], name)
		if bad != `{"a":{""b":1}}` { // it ends by itself, and is found wrong afterwards
			require.Equal(t, []string{errUnended.Error()}, got[3:len(got)-200], name)
		}
	}
	long := strings.Repeat(good+"\n", maxDocumentBytes/len(good)+1000)
	got := split(t, "{\"a\":\n"+long)
	require.Equal(t, errUnended.Error(), got[0])
	require.Len(t, got, 1+maxDocumentBytes/len(good)+1000)
	require.Equal(t, []string{errUnended.Error()}, split(t, "{\"a\":[\n  {\"b\":1},\n  {\"b\":2}\n"), "what is within a document is none")
}

func TestLongDocumentCostsOnlyItself(t *testing.T) {
	got := split(t, `{"a":"`+strings.Repeat("x", maxDocumentBytes)+`"}{"b":1}`)
	require.Equal(t, []string{errTooBig.Error(), `{"b":1}`}, got)
}

func FuzzSplitter(f *testing.F) {
	f.Add(`{"a":"}"}{}`)
	f.Add("[{},\n{\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		for _, part := range split(t, text) {
			require.NotEmpty(t, part)
		}
	})
}

func FuzzDocuments(f *testing.F) {
	f.Add(`{"companyData":{"company":"MADE-UP PRIVATE LIMITED","cin":"U55101GA2006PTC900001","llpStatus":"Active",
"MCAMDSCompanyAddress":[{"addressType":"Registered Address","streetAddress":"1 ROAD","postalCode":"403516"}]},
"directorData":[{"DIN":"12","FirstName":"MADE-UP","MCAUserRole":[{"cin":"ABD-0345","roleEffectiveDate":"02/01/2021"}]}]}`)
	f.Add(`{"data":{"companyData":{"cin":[1]},"directorData":{"DIN":{}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var read, ended int
		out := newOutlet(0, func() int64 { return 0 }, func(b *Batch) error {
			read += b.Read
			ended += len(b.Records) + len(b.Rejects)
			for _, n := range b.LeftOut {
				ended += int(n)
			}
			return nil
		})
		d := &documents{in: newSplitter(strings.NewReader(text)), dates: dateReader{asOf: "2025-01-01"}, out: out}
		require.NoError(t, d.run())
		require.NoError(t, out.flush())
		require.Equal(t, read, ended)
	})
}

// TestEachDocumentThatIsCutOffCostsItsLine, however many there are one after another.
func TestEachDocumentThatIsCutOffCostsItsLine(t *testing.T) {
	const cutOff = 5
	s := newSplitter(strings.NewReader(strings.Repeat("{\"a\":{\"b\"\n", cutOff) + "{\"c\":1}\n"))
	for range cutOff {
		_, _, err := s.next()
		require.ErrorIs(t, err, errUnended)
	}
	text, line, err := s.next()
	require.NoError(t, err)
	require.Equal(t, `{"c":1}`, string(text))
	require.Equal(t, cutOff+1, line)
}

// TestAFileOfDocumentsThatAreCutOffIsNotReadWithoutEnd: each of them is read to its end, or as far as a document may go.
func TestAFileOfDocumentsThatAreCutOffIsNotReadWithoutEnd(t *testing.T) {
	s := newSplitter(strings.NewReader(strings.Repeat("{\"a\":{\"b\"\n", maxAgain+2)))
	for range maxAgain + 1 {
		_, _, err := s.next()
		require.ErrorIs(t, err, errUnended)
	}
	_, _, err := s.next()
	require.ErrorIs(t, err, io.EOF, "the rest is lost")
}

// TestLinesAreCountedBehindADocumentThatIsCutOff.
func TestLinesAreCountedBehindADocumentThatIsCutOff(t *testing.T) {
	s := newSplitter(strings.NewReader("{\"a\":{\"b\"\n{\"c\":1}\n{\"d\":1}\n"))
	for want := range 3 {
		_, line, err := s.next()
		require.Equal(t, want == 0, errors.Is(err, errUnended))
		require.Equal(t, want+1, line)
	}
}
