// Command districts makes schema/importer/source/districts.txt, the table of districts and their
// spellings. Run it in the root of the repository:
//
//	go run ./internal/districts -data ../shared/data
//
// Its sources: the official post office directory (pincodes/*), whose district names the service returns;
// the official files of companies (companies/*/*), where a text in the district's position counts as a
// spelling if it is close to the name of the district of its pincodes; and spellings.txt, maintained by
// hand.
package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed spellings.txt
var byHand string

func main() {
	data := flag.String("data", "../shared/data", "folder of the official files")
	out := flag.String("out", "schema/importer/source/districts.txt", "file to write")
	flag.Parse()
	if err := run(*data, *out); err != nil {
		fmt.Fprintln(os.Stderr, "districts:", err)
		os.Exit(1)
	}
}

func run(data, out string) error {
	t, err := collect(data)
	if err != nil {
		return err
	}
	text := t.text()
	fmt.Printf("%d districts, %d spellings, %d of them learnt from files of companies\n", len(t.names), t.count(), t.learnt)
	return os.WriteFile(out, []byte(text), 0o644)
}

// collect reads all sources.
func collect(data string) (*table, error) {
	t := newTable()
	if err := t.readOffices(filepath.Join(data, "pincodes", "*")); err != nil {
		return nil, err
	}
	if err := t.readSpellings(byHand); err != nil {
		return nil, err
	}
	return t, t.learn(filepath.Join(data, "companies", "*", "*"))
}

// district is a district and its state.
type district struct{ state, name string }

// table has the spellings of each district, squashed.
type table struct {
	names   map[district]map[string]bool
	offices map[string]map[district]int // of each pincode
	first   map[district]district       // by squashed name
	learnt  int
}

func newTable() *table {
	return &table{map[district]map[string]bool{}, map[string]map[district]int{}, map[district]district{}, 0}
}

func (t *table) add(d district, spelling string) {
	if t.names[d] == nil {
		t.names[d] = map[string]bool{}
	}
	t.names[d][squash(spelling)] = true
}

func (t *table) count() (n int) {
	for _, spellings := range t.names {
		n += len(spellings)
	}
	return n
}

// text is the file: a line per district.
func (t *table) text() string {
	var b bytes.Buffer
	b.WriteString("# Made by internal/districts: state, district as in the post office directory, spellings.\n")
	byName := func(a, b district) int { return strings.Compare(a.state+"\t"+a.name, b.state+"\t"+b.name) }
	for _, d := range slices.SortedFunc(maps.Keys(t.names), byName) {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", d.state, d.name, strings.Join(slices.Sorted(maps.Keys(t.names[d])), " "))
	}
	return b.String()
}

// readOffices takes the districts of the post office directory.
func (t *table) readOffices(pattern string) error {
	return eachRow(pattern, func(row map[string]string) {
		name := strings.Join(strings.Fields(row["District"]), " ")
		if name == "" || strings.EqualFold(name, "nan") || strings.EqualFold(name, "na") {
			return
		}
		if name == strings.ToUpper(name) {
			name = properCase(name)
		}
		d := t.oneOf(district{stateOf(row["StateName"]), name})
		t.add(d, name)
		pincode := row["Pincode"]
		if t.offices[pincode] == nil {
			t.offices[pincode] = map[district]int{}
		}
		t.offices[pincode][d]++
	})
}

// oneOf returns the district that was read under the same name in other letters or spaces, if one was.
func (t *table) oneOf(d district) district {
	key := district{d.state, squash(d.name)}
	if _, read := t.first[key]; !read {
		t.first[key] = d
	}
	return t.first[key]
}

// readSpellings takes the spellings by hand.
func (t *table) readSpellings(text string) error {
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line+" ", "|")
		if len(cells) != 3 {
			return fmt.Errorf("spellings.txt, line %d: want three cells", n+1)
		}
		name, isNew := strings.CutPrefix(strings.TrimSpace(cells[1]), "+")
		d := t.oneOf(district{strings.TrimSpace(cells[0]), name})
		if _, known := t.names[d]; known == isNew {
			return fmt.Errorf("spellings.txt, line %d: is %s, %s in the directory?", n+1, d.name, d.state)
		}
		t.add(d, name)
		for _, spelling := range strings.Split(cells[2], ",") {
			if spelling = strings.TrimSpace(spelling); spelling != "" {
				t.add(d, spelling)
			}
		}
	}
	return nil
}

// A text is a spelling of a district if it is at most maxEdits letters from it and at least minShare of
// its rows with a known pincode, of which there are minRows, lie there.
const (
	maxEdits = 2
	minRows  = 3
	minShare = 0.8
)

// learn takes spellings from addresses of the current export: the last part before the state.
func (t *table) learn(pattern string) error {
	seen := map[string]map[district]int{}
	err := eachRow(pattern, func(row map[string]string) {
		parts := strings.Split(row["Registered_Office_Address"], ",")
		n := len(parts)
		if n < 5 {
			return
		}
		pincode, _, ok := strings.Cut(strings.TrimSpace(parts[n-1]), "-")
		text := strings.TrimSpace(parts[n-3])
		if !ok || text == strings.ToUpper(text) {
			return
		}
		if d, known := t.districtOf(pincode); known {
			if seen[squash(text)] == nil {
				seen[squash(text)] = map[district]int{}
			}
			seen[squash(text)][d]++
		}
	})
	for text, places := range seen {
		total := 0
		for _, n := range places {
			total += n
		}
		for d, n := range places {
			if total >= minRows && float64(n) >= minShare*float64(total) && alike(text, squash(d.name)) && !t.names[d][text] {
				t.add(d, text)
				t.learnt++
			}
		}
	}
	return err
}

// districtOf is the district of most offices of a pincode.
func (t *table) districtOf(pincode string) (best district, known bool) {
	most := 0
	for d, n := range t.offices[pincode] {
		if n > most || n == most && d.name < best.name {
			best, most = d, n
		}
	}
	return best, most > 0
}

func alike(a, b string) bool { return len(a) > 3 && edits(a, b) <= maxEdits }

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// squash keeps the letters and digits, in lower case.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, s)
}

// stateOf spells a state of the directory as the importer does.
func stateOf(name string) string {
	name = strings.TrimPrefix(properCase(name), "The ")
	return strings.NewReplacer(" And ", " and ", " Of ", " of ").Replace(name)
}

// properCase capitalises each word.
func properCase(s string) string {
	words := strings.Fields(strings.ToLower(s))
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}

// eachRow calls do with each row of CSV files with a header, by its columns.
func eachRow(pattern string, do func(map[string]string)) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no %s: -data names the folder", pattern)
	}
	for _, name := range files {
		if err := eachRowOf(name, do); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func eachRowOf(name string, do func(map[string]string)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	rows := csv.NewReader(plain)
	rows.FieldsPerRecord, rows.LazyQuotes, rows.ReuseRecord = -1, true, true
	header, err := rows.Read()
	if err != nil {
		return err
	}
	header = slices.Clone(header)
	row := map[string]string{}
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		clear(row)
		for i, cell := range cells[:min(len(cells), len(header))] {
			row[header[i]] = cell
		}
		do(row)
	}
}
