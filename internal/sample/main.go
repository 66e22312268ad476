// Command sample regenerates testdata/registry. The made-up files come from the lists in this folder;
// the real ones are picked from the official files in -data, or kept when -data is empty.
//
//	go run ./internal/sample -data ../shared/data
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	data := flag.String("data", "", "folder with companies/ and pincodes/; empty keeps the real files as they are")
	out := flag.String("out", "testdata/registry", "folder to write to")
	flag.Parse()
	if err := run(*data, *out); err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		os.Exit(1)
	}
}

func run(data, out string) error {
	if data != "" {
		if err := writeReal(data, out); err != nil {
			return err
		}
	}
	return writeMadeUp(out)
}

// writeMadeUp writes every made-up file. It reads the real companies in out, because
// some of them get made-up directors.
func writeMadeUp(out string) error {
	real, err := readTable(out, "companies-2025.csv.gz")
	if err != nil {
		return fmt.Errorf("read the real companies (run once with -data): %w", err)
	}
	var cins []string
	for _, row := range real.rows {
		cins = append(cins, row[real.column("CIN")])
	}
	people := newPeople(cins)
	tables := map[string]table{
		"made-up-companies.csv.gz":    madeUpCompanies(),
		"irregular-companies.csv.gz":  irregularCompanies(),
		"made-up-llps-monthly.csv.gz": monthlyLLPs(),
		"made-up-llps.csv.gz":         plainLLPs(),
		"made-up-directors.csv.gz":    people.directors,
		"made-up-appointments.csv.gz": people.appointments,
		"made-up-partners.csv.gz":     partners(),
		"made-up-contacts.csv.gz":     contacts(),
	}
	for name, t := range tables {
		if err := writeFile(out, name, t.encode()); err != nil {
			return err
		}
	}
	return writeFile(out, "made-up-documents.json.gz", documents())
}
