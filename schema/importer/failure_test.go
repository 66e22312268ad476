package importer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/extsort"
	"regedge/schema/importer/load"
	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
)

func TestUnusableFilesEndTheRunBeforeItWrites(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"empty":            {"", "is empty: was it fetched whole, or an empty sheet exported?"},
		"blank":            {" \n\r\n", "is empty"},
		"another header":   {"a,b,c\n1,2,3\n", "docs/import-formats.md"},
		"a column missing": {"CIN,CompanyName\n" + rowA, "its columns are CIN, CompanyName; nearest are companies, which also need companystatus"},
		"a list of new companies": {"CIN,COMPANY NAME,STATE,PAIDUP CAPITAL,REGISTERED OFFICE ADDRESS,EMAIL\nU55101GA2006PTC900001,A,Goa,1,X,a@example.com\n",
			"nearest are companies, which also need companystatus"},
		"appointments without dates":    {"cin,din,designation\nU55101GA2006PTC900001,12,Director\n", "nearest are appointments, which also need appointmentdate"},
		"a key alone":                   {"CIN,x\n1,2\n", "nearest are companies, which also need companyname and companystatus"},
		"a cut gzip":                    {gzipped(headerA + rowA)[:60], "the file is cut off: fetch it again"},
		"only a header":                 {headerA, "holds a header and no row"},
		"only headers":                  {headerA + "\n\r\n", "holds a header and no row"},
		"UTF-16 without a mark":         {encoded(headerA+rowA, 2), "UTF-16"},
		"UTF-32":                        {encoded(headerA+rowA, 4), "UTF-32"},
		"UTF-32 with a mark":            {"\xff\xfe\x00\x00" + encoded(headerA, 4), "UTF-32"},
		"zeros before the header":       {strings.Repeat("\x00", 16) + headerA + rowA, "zero bytes"},
		"a damaged gzip":                {damaged(gzipped(manyCompanies(20))), "the file is damaged: fetch it again"},
		"a damaged beginning of a gzip": {"\x1f\x8b\x00" + gzipped(headerA + rowA)[3:], "the file is damaged: fetch it again"},
		"something else behind a gzip":  {gzipped(headerA+rowA) + "<html>not found</html>", "the file is damaged: fetch it again"},
		"more zeros than fill a block":  {gzipped(headerA+rowA) + strings.Repeat("\x00", 70_000), "the file is damaged: fetch it again"},
		"something behind zeros":        {gzipped(headerA+rowA) + "\x00\x00x", "the file is cut off: fetch it again"},
		"a wrong sum of zstd":           {damagedZstd(manyCompanies(20)), "the file is damaged: fetch it again"},
		"a header of two rows":          {"CIN,Company Name,Company Status,Registered Address,Registered Address\n,,,Address,City\n", "or, if the header has two rows, make them one"},
		"columns doubled":               {"CIN,CompanyName,CompanyStatus,company_status\n", "mean the same"},
		"the first column doubled":      {"CIN,CompanyName,CompanyStatus,cin\n", "mean the same"},
		"a spreadsheet":                 {"PK\x03\x04rest", `save the sheet with the list as "CSV UTF-8" (Excel) or "Text CSV" (LibreOffice), with dates as YYYY-MM-DD`},
		"a SYLK file":                   {"ID;PCALCOOO32\r\nB;Y402;X16\r\n", "spreadsheet"},
		"a SYLK file of Excel":          {"ID;PWXL;N;E\r\nP;PGeneral\r\n", "spreadsheet"},
		"a DIF file":                    {"TABLE\r\n0,1\r\n\"EXCEL\"\r\n", "spreadsheet"},
		"an empty archive":              {"PK\x05\x06" + strings.Repeat("\x00", 18), "zip archive"},
		"a tar archive":                 {archived("companies.csv", headerA+rowA), "is a tar archive: unpack it"},
		"a compressed tar archive":      {gzipped(archived("companies.csv", headerA+rowA)), "is a tar archive: unpack it"},
		"an older spreadsheet":          {"\xd0\xcf\x11\xe0rest", "spreadsheet"},
		"a spreadsheet in gzip":         {gzipped("PK\x03\x04rest"), "spreadsheet"},
		"gzip of gzip":                  {gzipped(gzipped(headerA + rowA)), "was compressed twice: uncompress it once"},
		"bzip2":                         {"BZh91AY&SY\x00", "is packed in a way that is not read: unpack it, or pack it with gzip or zstd"},
		"xz":                            {"\xfd7zXZ\x00\x00", "is packed in a way that is not read"},
		"7z":                            {"7z\xbc\xaf\x27\x1c\x00\x04", "is packed in a way that is not read"},
		"rar":                           {"Rar!\x1a\x07\x01\x00", "is packed in a way that is not read"},
		"compress":                      {"\x1f\x9d\x90abc", "is packed in a way that is not read"},
		"a database":                    {"SQLite format 3\x00\x10\x00", "is a database: export its table"},
		"one known column":              {"Email,x\na@example.com,1\n", "its columns are Email, x; docs/import-formats.md lists"},
		"UTF-16 of nothing":             {"\xff\xfe", "is empty"},
		"a page in UTF-16":              {"\xff\xfe" + encoded("<html>", 2), "is a web page or XML"},
		"binary behind a mark":          {"\xff\xfe" + strings.Repeat("\x00\x01", 64), "not that of a known format"},
		"gzip of nothing":               {gzipped(""), "is empty"},
		"broken gzip":                   {"\x1f\x8b\x00", "gzip"},
		"a window of zstd over 128 MiB": {zstdWindow(18), "is over 128 MiB: unpack it, or pack it without zstd --long"},
		"broken zstd":                   {"\x28\xb5\x2f\xfd\xff", "read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			good, bad := w.file(headerA+rowA), w.file(c.content)
			_, err := Run(context.Background(), w.config("2025-05-05", good, bad))
			require.ErrorContains(t, err, bad, "the error names the file")
			require.Contains(t, strings.ReplaceAll(err.Error(), bad, ""), c.want) // the folder is called as the test
			_, err = os.Stat(w.registry)
			require.ErrorIs(t, err, os.ErrNotExist, "nothing was written")
		})
	}
}

// archived is a tar archive of one file.
func archived(name, content string) string {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))})
	_, _ = w.Write([]byte(content))
	_ = w.Close()
	return archive.String()
}

// zstdWindow is a file of one byte whose frame asks for a window of 2^(10+exponent) bytes, which a
// decoder has to allocate (RFC 8878, 3.1.1.1.2).
func zstdWindow(exponent byte) string {
	return "\x28\xb5\x2f\xfd\x00" + string([]byte{exponent << 3}) + "\x09\x00\x00x"
}

// encoded writes each byte of a text with a width, the lowest byte first.
func encoded(text string, width int) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteByte(c)
		b.WriteString(strings.Repeat("\x00", width-1))
	}
	return b.String()
}

// damaged changes a byte near the end of a file.
func damaged(file string) string {
	b := []byte(file)
	b[len(b)-6] ^= 0xff // of the checksum
	return string(b)
}

// damagedZstd compresses a text, and changes a byte of its checksum.
func damagedZstd(text string) string {
	z, _ := zstd.NewWriter(nil)
	b := z.EncodeAll([]byte(text), nil)
	b[len(b)-1] ^= 0xff
	return string(b)
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return b.String()
}

func TestMisuseIsNamed(t *testing.T) {
	w := newFixture(t)
	good := w.file(headerA + rowA)
	for want, change := range map[string]func(*Config){
		"is a directory":           func(c *Config) { c.Files = []string{w.folder} },
		"no such file":             func(c *Config) { c.Files = []string{filepath.Join(w.folder, "none")} },
		"no files":                 func(c *Config) { c.Files = nil },
		"want YYYY-MM-DD":          func(c *Config) { c.AsOf = "31-03-2021" },
		"is yet to come":           func(c *Config) { c.AsOf = c.Now().AddDate(0, 0, 2).Format(time.DateOnly) },
		"only once":                func(c *Config) { c.Files, c.Stdin = []string{"-", "-"}, strings.NewReader(headerA+rowA) },
		"is empty":                 func(c *Config) { c.Files = []string{"-"} },
		"not a pincode directory":  func(c *Config) { c.Pincodes = []string{good} },
		"then push it":             func(c *Config) { c.Registry = "libsql://example.com" },
		"create the rejects file":  func(c *Config) { c.Rejects = filepath.Join(w.folder, "none", "rejects") },
		"name another file":        func(c *Config) { c.Registry = w.file(strings.Repeat("not a database ", 100)) },
		"its folder: ":             func(c *Config) { c.Registry = filepath.Join(w.folder, "none", "registry.db") },
		"the rejects file: write ": func(c *Config) { c.Rejects = "/dev/full" },
	} {
		t.Run(want, func(t *testing.T) {
			if want == "the rejects file: write " {
				if _, err := os.Stat("/dev/full"); err != nil {
					t.Skip("this system has no /dev/full")
				}
			}
			config := w.config("2025-05-05", good)
			change(&config)
			_, err := Run(context.Background(), config)
			require.ErrorContains(t, err, want)
		})
	}
}

// TestTomorrowIsTheNextDayInUTC, wherever the import runs.
func TestTomorrowIsTheNextDayInUTC(t *testing.T) {
	evening := time.Date(2026, 3, 31, 20, 0, 0, 0, time.UTC)
	for name, hours := range map[string]int{"UTC": 0, "Almaty": 5, "Anchorage": -9} {
		now := evening.In(time.FixedZone(name, hours*3600))
		require.NoError(t, checkAsOf("2026-04-01", now), name)
		require.ErrorContains(t, checkAsOf("2026-04-02", now), "is yet to come", name)
	}
}

// TestAnImportWithoutADateIsOfTheDayInUTC, wherever it runs.
func TestAnImportWithoutADateIsOfTheDayInUTC(t *testing.T) {
	evening := time.Date(2026, 3, 31, 20, 0, 0, 0, time.UTC)
	for name, hours := range map[string]int{"UTC": 0, "Almaty": 5, "Lord Howe": 11} {
		w := newFixture(t)
		config := w.config("", w.file(headerA+rowA))
		config.Now = func() time.Time { return evening.In(time.FixedZone(name, hours*3600)) }
		_, err := Run(t.Context(), config)
		require.NoError(t, err, name)
		require.Equal(t, "2026-03-31", w.row("SELECT as_of FROM company"), name)
	}
}

func TestASourceMaySpeakOfTomorrow(t *testing.T) {
	w := newFixture(t)
	report := w.run(w.now.AddDate(0, 0, 2).Format(time.DateOnly), w.file(headerA+rowA)) // a day passes before it runs
	require.EqualValues(t, 1, report.Files[0].New)
}

func TestNothingOfAFileThatIsCutOffIsWritten(t *testing.T) {
	w := newFixture(t)
	whole := gzipped(manyCompanies(10_100))
	_, err := Run(context.Background(), w.config("2025-05-05", w.file(whole[:len(whole)-len(whole)/10])))
	require.ErrorContains(t, err, "fetch it again")
	require.Empty(t, w.registryFiles())
}

// TestADamagedCompressedFileSaysWhatToDo, whichever of its bytes is wrong.
func TestADamagedCompressedFileSaysWhatToDo(t *testing.T) {
	w := newFixture(t)
	text := manyCompanies(300)
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer encoder.Close()
	for _, whole := range []string{gzipped(text), string(encoder.EncodeAll([]byte(text), nil))} {
		for _, at := range []int{15, 30, len(whole) / 3, len(whole) / 2, 2 * len(whole) / 3, len(whole) - 3} {
			damaged := []byte(whole)
			damaged[at] ^= 0xff
			_, err := Run(t.Context(), w.config("2025-05-05", w.file(string(damaged))))
			require.ErrorContains(t, err, "fetch it again and run the same import again", "byte %d of %d", at, len(whole))
			require.Empty(t, w.registryFiles())
		}
	}
}

func TestNewerDatabaseIsNotTouched(t *testing.T) {
	w := newFixture(t)
	db, err := schema.OpenFile(w.registry)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(context.Background(), db, schema.Registry))
	_, err = db.Exec("INSERT INTO schema_version SELECT 999, 0, max(database) FROM schema_version")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = Run(context.Background(), w.config("2025-05-05", w.file(headerA+rowA)))
	var newer *schema.NewerError
	require.ErrorAs(t, err, &newer)
	require.Equal(t, "0", w.row("SELECT count(*) FROM company"))
}

func TestAnotherDatabaseIsNotTouched(t *testing.T) {
	w := newFixture(t)
	db, err := schema.OpenFile(w.registry)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(context.Background(), db, schema.Access))
	require.NoError(t, db.Close())
	before := w.rows("SELECT name FROM sqlite_schema ORDER BY name")
	_, err = Run(context.Background(), w.config("2025-05-05", w.file(headerA+rowA)))
	var other *schema.OtherError
	require.ErrorAs(t, err, &other)
	require.ErrorContains(t, err, w.registry)
	require.Equal(t, before, w.rows("SELECT name FROM sqlite_schema ORDER BY name"))
}

func TestErrorsOfTheMachineSayWhatToDo(t *testing.T) {
	require.ErrorContains(t, withHint(sqlite3.FULL), "make room")
	require.ErrorContains(t, withHint(sqlite3.NOTADB), "name another file")
	require.ErrorContains(t, withHint(sqlite3.BUSY), "wait for it")
	require.ErrorContains(t, withHint(fmt.Errorf("write sorted records: %w", syscall.ENOSPC)), "make room")
	require.NoError(t, withHint(nil))
}

// TestPersonalContactsAreNowhere imports person formats with contact columns added, good
// rows and bad ones, and looks for the contacts in every byte that was written.
func TestPersonalContactsAreNowhere(t *testing.T) {
	w := newFixture(t)
	w.run("2025-05-05",
		w.file("din,name,disqualified,designation,appointment_date,email,Mobile No,address\n"+
			"12,MADE-UP A,no,,,secret1@example.com,secret2,secret3 street\n"+
			"x,MADE-UP B,no,,,secret4@example.com,secret5,\"secret6, street\"\n"+
			"13,MADE-UP C,no,,,secret7,secret8\n"+
			"14,\"MADE-UP D,no,,,secret9,secret10,secret11\n"),
		w.file("din,name,disqualified\n15,MADE-UP E,no,secret18\n16,\"MADE-UP F,no,secret19\n"),
		w.file("cin,din,designation,appointment_date,cessation_date,cessation_reason,phone\nbad,12,Director,,,,secret12\n"),
		w.file("llpin,din,name,status,joined_on,left_on,email\nABD-0345,,,,,,secret13\n"),
		w.file(strings.ReplaceAll(madeUpDocument, "private", "secret14")),
		w.file(`{"directorData":[{"emailAddress":"secret15"}]}{"broken":secret16}secret17`),
	)
	require.Contains(t, w.rejected(), `"x,MADE-UP B,no,,,,,"`, "what is ours is kept")
	require.Contains(t, w.rejected(), "(not kept: the row may hold personal contact details)")
	names, err := filepath.Glob(filepath.Join(w.folder, "re*"))
	require.NoError(t, err)
	for _, name := range names {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(content), "secret", name)
	}
}

func TestReportIsATableThatAddsUp(t *testing.T) {
	w := newFixture(t)
	report := w.run("2025-05-05", w.file(headerA+rowA+"F1234"+rowA[21:]+"x"+rowA[21:]))
	var b bytes.Buffer
	require.NoError(t, report.WriteTable(&b))
	require.Regexp(t, `total\s+3\s+1\s+0\s+0\s+1\s+1\n`, b.String())
	require.Contains(t, b.String(), "rejected: invalid CIN 1\n  invalid CIN: first in "+report.Files[0].Name+", line 4: x; it has 21 characters, as U55101GA2006PTC900001, with no letter in place of a digit\nleft out: foreign company 1\nrelease 20261122T071500Z-010216, ")
	report.Files[0].Unchanged++
	require.ErrorContains(t, report.Files[0].check(), "invariant broken")
}

// TestTheReportCountsTheNewestRelease, each table by itself, also when nothing changed.
func TestTheReportCountsTheNewestRelease(t *testing.T) {
	w := newFixture(t)
	llps, directors, appointments, partners := "llpin,llp_name,status,incorporation_date\n", "din,name,disqualified\n",
		"cin,din,designation,appointment_date\n", "llpin,din,name,joined_on\n"
	for i := 1; i <= 5; i++ {
		if i <= 2 {
			llps += fmt.Sprintf("ABD-034%d,MADE-UP LLP,Active,2020-01-01\n", i)
		}
		if i <= 3 {
			directors += fmt.Sprintf("%d,MADE-UP DIRECTOR,no\n", i)
		}
		if i <= 4 {
			appointments += fmt.Sprintf("U55101GA2006PTC900001,%d,Director,2020-01-01\n", i)
		}
		partners += fmt.Sprintf("ABD-0341,%d,MADE-UP PARTNER,2020-01-01\n", i)
	}
	report := w.run("2025-05-05", w.file(headerA+rowA), w.file(llps), w.file(directors), w.file(appointments), w.file(partners))
	require.Equal(t, Held{Companies: 1, LLPs: 2, Directors: 3, Appointments: 4, Partners: 5}, report.Held)

	again := w.file(headerA + rowA + strings.Replace(rowA, "900001", "900002", 1))
	for _, changes := range []bool{true, false} {
		config := w.config("2025-05-05", again)
		began, calls := config.Now(), 0
		config.Now = func() time.Time { calls++; return began.Add(time.Duration(min(calls-1, 1)) * 90 * time.Second) }
		report, err := Run(t.Context(), config)
		require.NoError(t, err)
		require.Equal(t, changes, report.Release != "")
		require.EqualValues(t, []int64{2, 2, 5}, []int64{report.Held.Companies, report.Held.LLPs, report.Held.Partners})
		var table strings.Builder
		require.NoError(t, report.WriteTable(&table))
		require.Contains(t, table.String(), ", 90.0 s\n")
	}
}

// TestRejectsSayWhatIsThere and what to do, without a rejects file; a row without a value is left out.
func TestRejectsSayWhatIsThere(t *testing.T) {
	w := newFixture(t)
	report := w.run("2025-05-05", w.file("CIN,CompanyName,CompanyStatus\nU00001GA2020PTC000001,MADE-UP ONE,Actve\n , ,\n,,\nU00001GA2020PTC000002,MADE-UP TWO,Active\n"))
	require.Equal(t, map[string]int64{"empty row": 2}, report.Files[0].LeftOut)
	require.Equal(t, map[string]string{"unknown status": "line 2: Actve"}, report.Files[0].First)
	var b bytes.Buffer
	require.NoError(t, report.WriteTable(&b))
	require.Contains(t, b.String(), `line 2: Actve; docs/contract.md, "Statuses", lists those that are known`)
}

// TestADraftThatWasLeftBehindIsNotTakenIn: one of a run that was killed.
func TestADraftThatWasLeftBehindIsNotTakenIn(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", manyCompanies(300))
	require.NoError(t, os.Rename(w.registry, w.registry+load.DraftSuffix))
	w.text("2025-05-05", headerA+rowA)
	require.Equal(t, "1", w.row("SELECT count(*) FROM company"))
	require.NoFileExists(t, w.registry+load.DraftSuffix)
}

// TestALogBesideADraftIsNotTakenIn: a run that was killed at its end has left it.
func TestALogBesideADraftIsNotTakenIn(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", manyCompanies(300))
	db, err := schema.OpenFile(w.registry)
	require.NoError(t, err)
	_, err = db.Exec("UPDATE company SET phone = '000000'")
	require.NoError(t, err)
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(w.registry + suffix)
		require.NoError(t, err)
		require.NotEmpty(t, content)
		require.NoError(t, os.WriteFile(w.registry+load.DraftSuffix+suffix, content, 0o600))
	}
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(w.registry))
	w.text("2025-05-05", headerA+rowA)
	require.Equal(t, []string{w.registry}, w.registryFiles())
	require.Equal(t, "1", w.row("SELECT count(*) FROM company"))
}

// TestALogThatWasLeftBehindIsNotTakenIn imports to the place of a registry that was removed without its
// log, which a reader had kept.
func TestALogThatWasLeftBehindIsNotTakenIn(t *testing.T) {
	w := newFixture(t)
	first, second := w.file(headerA+rowA), w.file(manyCompanies(300))
	_, err := Run(t.Context(), w.config("2025-05-05", first))
	require.NoError(t, err)
	reader, err := schema.OpenReadOnly(w.registry)
	require.NoError(t, err)
	defer reader.Close()
	tx, err := reader.Begin()
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow("SELECT count(*) FROM company").Scan(&n))
	_, err = Run(t.Context(), w.config("2025-06-06", second))
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	left, err := os.Stat(w.registry + "-wal")
	require.NoError(t, err)
	require.NotZero(t, left.Size(), "the reader kept the log from being emptied")
	require.NoError(t, os.Remove(w.registry))

	_, err = Run(t.Context(), w.config("2025-05-05", first))
	require.NoError(t, err)
	db, err := schema.OpenReadOnly(w.registry)
	require.NoError(t, err)
	defer db.Close()
	var state string
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&state))
	require.Equal(t, "ok", state)
	require.NoError(t, db.QueryRow("SELECT count(*) FROM company").Scan(&n))
	require.Equal(t, 1, n)
}

// TestAnImportWhoseRecordsCanNotBeSortedFails: what was sorted before is only a part of it.
func TestAnImportWhoseRecordsCanNotBeSortedFails(t *testing.T) {
	full, cut := errors.New("no room to sort"), errors.New("the file is cut off")
	for name, c := range map[string]struct{ ordering, parsing, want error }{
		"sorting ends the reading": {full, errStopped, full},
		"both fail":                {full, cut, full},
		"reading fails":            {nil, cut, cut},
		"the writer has ended":     {errStopped, errStopped, nil},
		"none":                     {nil, nil, nil},
	} {
		k := newIntake(nil)
		close(k.complete)
		k.ordering, k.parsing = c.ordering, c.parsing
		require.Equal(t, c.want, k.end(), name)
	}
}

// TestRecordsThatAreNotWrittenAreLetGo: they hold memory and a file.
func TestRecordsThatAreNotWrittenAreLetGo(t *testing.T) {
	k, left := newIntake(nil), extsort.New(t.TempDir(), 1000)
	require.NoError(t, left.Add([]byte("key"), nil))
	k.complete <- ordered{nil, left}
	close(k.complete)
	require.NoError(t, k.end())
	rows, err := left.Rows()
	require.NoError(t, err)
	require.False(t, rows.Next(), "it is closed")
}

// TestRecordsThatWereWrittenAreLetGo before the next table: otherwise an import keeps the memory and the files of all.
func TestRecordsThatWereWrittenAreLetGo(t *testing.T) {
	w := newFixture(t)
	r, err := newRun(t.Context(), w.config("2025-05-05", w.file(headerA+rowA)))
	require.NoError(t, err)
	defer r.close()
	require.NoError(t, r.inspect())
	r.tally.rejects = new(rejectsFile)
	require.NoError(t, r.openStore(t.Context()))
	require.NoError(t, r.store.StartBulk())
	gathered := merge.NewSorters(w.registry)
	v := make([]record.Value, len(record.DirectorTable.Columns))
	require.NoError(t, gathered.Add(&record.Entry{Record: record.New(record.DirectorTable, v, "00000001")}))
	written := gathered.Take(record.DirectorTable)
	r.intake.complete <- ordered{record.DirectorTable, written}
	close(r.intake.complete)
	require.NoError(t, r.writeAll(t.Context()))
	rows, err := written.Rows()
	require.NoError(t, err)
	require.False(t, rows.Next(), "it is closed")
}

// TestAFileThatBecameAnotherIsRefused: its format said when it is read, and what it has now may come too late.
func TestAFileThatBecameAnotherIsRefused(t *testing.T) {
	w := newFixture(t)
	w.run("2025-05-04", w.file(headerA+rowA))
	file := w.file("cin,din,appointment_date,cessation_date\nU55101GA2006PTC900001,12,2020-01-01,\n")
	r, err := newRun(context.Background(), w.config("2025-05-05", file))
	require.NoError(t, err)
	defer r.close()
	require.NoError(t, r.inspect())
	r.tally.rejects = &rejectsFile{}
	require.NoError(t, r.openStore(context.Background()))
	require.NoError(t, os.WriteFile(file, []byte(headerA+strings.ReplaceAll(rowA, "900001", "900002")), 0o600))
	require.ErrorContains(t, r.importAll(context.Background()), "has changed since this import began")
	require.Empty(t, r.report.Release)
}
