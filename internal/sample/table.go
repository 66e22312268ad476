package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// table is a CSV file: a header and its rows.
type table struct {
	header []string
	rows   [][]string
	crlf   bool // lines end in CR LF, not LF
	latin1 bool // ISO 8859-1, not UTF-8
}

func newTable(header string) table {
	return table{header: strings.Split(header, ",")}
}

func (t *table) add(fields ...string) {
	if len(fields) != len(t.header) {
		panic(fmt.Sprintf("row %q has %d fields, its header %d", fields, len(fields), len(t.header)))
	}
	t.rows = append(t.rows, fields)
}

func (t *table) column(name string) int { return slices.Index(t.header, name) }

func (t *table) encode() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = t.crlf
	_ = w.Write(t.header) // a bytes.Buffer takes every write
	_ = w.WriteAll(t.rows)
	if !t.latin1 {
		return b.Bytes()
	}
	var narrow []byte
	for _, r := range b.String() {
		narrow = append(narrow, byte(r))
	}
	return narrow
}

func readTable(folder, name string) (table, error) {
	file, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		return table{}, err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return table{}, fmt.Errorf("open %s: %w", name, err)
	}
	records, err := readRecords(plain)
	if err != nil {
		return table{}, fmt.Errorf("read %s: %w", name, err)
	}
	return table{header: records[0], rows: records[1:]}, nil
}

func readRecords(r io.Reader) ([][]string, error) {
	reader := csv.NewReader(r)
	reader.LazyQuotes = true
	records, err := reader.ReadAll()
	if err == nil && len(records) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return records, err
}

// writeFile writes data, gzip-compressed, without a time in the header: the same data
// gives the same bytes.
func writeFile(folder, name string, data []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o644)
}
