package importer

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"regedge/schema/importer/load"
	"regedge/schema/importer/record"
	"regedge/schema/importer/source"
)

func TestRejectsReplaceNothingButRejects(t *testing.T) {
	w := newFixture(t)
	other, input := w.file("CIN,CompanyName\n"), w.file(headerA+rowA)
	linked, again := filepath.Join(w.folder, "linked"), filepath.Join(w.folder, "again")
	require.NoError(t, os.Symlink(input, linked))
	require.NoError(t, os.Link(input, again))
	w.run("2025-05-05", input)
	before := w.everything()
	for name, path := range map[string]string{
		"another file": other, "the input": input, "a symbolic link to the input": linked, "the input by another name": again,
		"the registry": w.registry, "the registry's log": w.registry + "-wal", "a new registry's draft": w.registry + load.DraftSuffix,
	} {
		t.Run(name, func(t *testing.T) {
			content, _ := os.ReadFile(path)
			config := w.config("2025-05-06", input)
			config.Rejects = path
			_, err := Run(context.Background(), config)
			require.ErrorContains(t, err, "name another file")
			after, _ := os.ReadFile(path)
			require.Equal(t, string(content), string(after))
			require.Equal(t, before, w.everything())
		})
	}
}

// TestRejectsInThePlaceOfANewRegistryLeaveNoFile: an empty one would be taken for a registry that is there.
func TestRejectsInThePlaceOfANewRegistryLeaveNoFile(t *testing.T) {
	w := newFixture(t)
	config := w.config("2025-05-05", w.file(headerA+rowA))
	for _, path := range []string{w.registry, w.registry + load.DraftSuffix} {
		config.Rejects = path
		_, err := Run(t.Context(), config)
		require.ErrorContains(t, err, "name another file")
		require.Empty(t, w.registryFiles())
	}
}

func TestRejectsReplaceEarlierOnes(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", headerA+"x"+rowA+"y"+rowA)
	require.Contains(t, w.rejected(), "y"+rowA[:20])
	w.text("2025-05-05", headerA+"z"+rowA)
	require.NotContains(t, w.rejected(), "y"+rowA[:20])
	require.Contains(t, w.rejected(), "z"+rowA[:20])
	require.NoError(t, os.Truncate(w.rejects, 0))
	w.text("2025-05-05", headerA+rowA)
	require.Equal(t, "file,line,reason,row\n", w.rejected())
}

func TestRejectsOfAnImportThatCouldNotBeginStay(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", headerA+"x"+rowA)
	before := w.rejected()
	config := w.config("2025-05-05", w.file(headerA+rowA))
	config.Registry = filepath.Join(w.folder, "none", "registry.db")
	_, err := Run(context.Background(), config)
	require.Error(t, err)
	require.Equal(t, before, w.rejected())
}

// TestRejectsAreBounded imports a small gzip of many long wrong rows, and one of very many short ones.
func TestRejectsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		rows   int
		row    string
		listed int
	}{
		"long rows":  {1600, "=" + strings.Repeat("x", 64_000) + rowA, 1600},
		"short rows": {maxRejectRows + 7, "x" + strings.TrimLeft(rowA[21:40], ",") + strings.Repeat(",", 15) + "\n", maxRejectRows},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			z.Write([]byte(headerA))
			for range c.rows {
				z.Write([]byte(c.row))
			}
			require.NoError(t, z.Close())
			report := w.text("2025-05-05", packed.String())
			require.Equal(t, int64(c.rows), sum(report.Rejected), "all are counted")
			t.Logf("%d KB of gzip make %d KB of rejects", packed.Len()>>10, len(w.rejected())>>10)
			require.LessOrEqual(t, len(w.rejected()), maxRejectBytes+1000)
			rows, err := csv.NewReader(strings.NewReader(w.rejected())).ReadAll()
			require.NoError(t, err)
			listed := rows[1:]
			if c.rows > c.listed {
				last := listed[len(listed)-1]
				require.Equal(t, []string{"", "", "7 more rows were rejected and are not listed", ""}, last)
				listed = listed[:len(listed)-1]
			}
			require.Len(t, listed, c.listed)
			for _, row := range listed {
				require.LessOrEqual(t, len(row[3]), maxCellBytes+1)
			}
		})
	}
}

// TestNoRowIsListedBehindOneThatIsNot: the last row says how many follow.
func TestNoRowIsListedBehindOneThatIsNot(t *testing.T) {
	r, err := openRejects(t.Context(), filepath.Join(t.TempDir(), "rejects.csv"), nil, nil)
	require.NoError(t, err)
	defer r.close()
	require.NoError(t, r.begin())
	r.bytes = maxRejectBytes - 100
	for _, raw := range []string{strings.Repeat("x", 100), "short"} {
		r.add("file", &record.Reject{Line: 1, Reason: "wrong", Raw: raw})
	}
	require.EqualValues(t, 0, r.rows)
	require.EqualValues(t, 2, r.more)
}

// TestRejectsAreInTheFileOnceTheirRecordsAre written: the process may end before the import.
func TestRejectsAreInTheFileOnceTheirRecordsAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejects.csv")
	r, err := openRejects(t.Context(), path, nil, nil)
	require.NoError(t, err)
	defer r.close()
	require.NoError(t, r.begin())
	of := tally{files: []FileReport{newFileReport("file", "")}, rejects: r}
	of.reject(0, []record.Reject{{Line: 7, Reason: "wrong", Raw: "row"}})
	require.NoError(t, of.written(load.NewWritten(1)))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(content), "file,7,wrong,row\n")
}

// TestProgressEndsAtTheTotal, which standard input is no part of.
func TestProgressEndsAtTheTotal(t *testing.T) {
	var told Progress
	of := tally{progress: func(p Progress) { told = p }, present: Progress{Bytes: 300, Total: 100}}
	of.tell()
	require.EqualValues(t, 100, told.Bytes)

	of = tally{rejects: new(rejectsFile), files: []FileReport{newFileReport("a", ""), newFileReport("b", "")}, positions: make([]int64, 2)}
	for _, b := range []source.Batch{
		{Position: 10, Read: 3, Rejects: make([]record.Reject, 3)}, {Position: 30, Read: 4, Records: make([]record.Entry, 2), Rejects: make([]record.Reject, 2)},
		{File: 1, Position: 5, Read: 1, Records: make([]record.Entry, 1)},
	} {
		of.read(&b)
	}
	require.EqualValues(t, 35, of.present.Bytes, "a batch says where its file is read, not how much it has")
	require.EqualValues(t, []int64{8, 5, 3}, []int64{of.present.Rows, of.files[0].Read, of.gathered}, "records count for a file once they are written")
	of.settled(1)
	of.settled(2)
	require.EqualValues(t, 3, of.present.Written)
}

// TestRejectsAreInertInASpreadsheet opens the rejects with each separator that spreadsheets split by.
func TestRejectsAreInertInASpreadsheet(t *testing.T) {
	w := newFixture(t)
	content := headerA
	for _, cell := range []string{
		"=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "＝1", "  =1", "x;=HYPERLINK(1)", "x; \"\"=1", "x\t+1", "x|@y", `"=1"`, "=", "'=1", "plain",
	} {
		content += `"` + cell + `"` + strings.TrimPrefix(rowA, rowA[:21])
		content += cell + strings.TrimPrefix(rowA, rowA[:21])
	}
	w.text("2025-05-05", content)
	require.Contains(t, w.rejected(), "plain,MADE-UP")
	for _, separator := range ",;\t|" {
		reader := csv.NewReader(strings.NewReader(w.rejected()))
		reader.Comma, reader.LazyQuotes, reader.FieldsPerRecord = separator, true, -1
		rows, err := reader.ReadAll()
		require.NoError(t, err)
		for _, row := range rows {
			for _, cell := range row {
				require.NotRegexp(t, `^[ "]*[=+\-@\t\r＝＋－＠]`, cell, "split by %q", separator)
			}
		}
	}
}

// TestACellIsCutBetweenCharacters: half of one would make a program refuse the file, or show other signs.
func TestACellIsCutBetweenCharacters(t *testing.T) {
	for _, lead := range []string{"", "x", "xx"} {
		row := inertRow(lead + strings.Repeat("न", maxCellBytes))
		require.True(t, utf8.ValidString(row), "%q", row[len(row)-40:])
		require.True(t, strings.HasSuffix(row, "न"+cutMark+"\n"))
		require.LessOrEqual(t, len(row), maxCellBytes+1)
	}
}

// TestTheFirstRejectOfAllFilesIsShown, so that it is found in the order in which the files were named.
func TestTheFirstRejectOfAllFilesIsShown(t *testing.T) {
	w := newFixture(t)
	first, second := w.file(headerA+rowA+"x"+rowA), w.file(headerA+"y"+rowA)
	report := w.run("2025-05-05", first, second)
	require.Equal(t, map[string]string{"invalid CIN": first + ", line 3: x" + rowA[:21]}, report.Total().First)
}

// TestARejectedRowOfPersonsIsItsOwn: of one that is damaged by a zero byte, what is kept is the row, and not the one before
// it; nor is anything kept of one that does not fit the header.
func TestARejectedRowOfPersonsIsItsOwn(t *testing.T) {
	w := newFixture(t)
	w.run("2025-05-05",
		w.file("din,name,disqualified,phone\n12,MADE-UP A,no,1\n13,MADE-UP\x00 B,no,secret1\n"),
		w.file("din,name,disqualified\n14,MADE-UP C,no\n15,MADE-UP\x00 D,no,secret2\n"))
	rejects := w.rejected()
	require.Contains(t, rejects, `"13,MADE-UP`)
	require.NotContains(t, rejects, "MADE-UP A")
	require.NotContains(t, rejects, "secret")
	require.Contains(t, rejects, "(not kept: the row may hold personal contact details)")
}
