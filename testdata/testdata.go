// Package testdata holds the data sets that the tests share and that an installed
// program shows on its first start: a small real sample of the register and made-up
// directors, LLPs, partners and contacts. README.md says what is real, where it comes
// from, and under which licence.
package testdata

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed registry
var files embed.FS

// Source is one file of the sample, in a format of the importer.
type Source struct {
	// Name is the file's name in the file system of Registry.
	Name string
	// AsOf is the date the file speaks of, YYYY-MM-DD.
	AsOf string
}

const (
	asOf2021 = "2021-03-31"
	asOf2025 = "2025-05-05"
)

// Pincodes is the name of the post offices' directory in the file system of Registry.
const Pincodes = "pincodes.csv.gz"

// Irregular is the name of the file whose rows the importer must refuse, leave out or
// mend. It belongs to the tests: Sources does not name it.
const Irregular = "irregular-companies.csv.gz"

// Registry is the file system that holds the files of Sources, Pincodes and Irregular.
func Registry() fs.FS {
	sub, err := fs.Sub(files, "registry")
	if err != nil {
		panic(err) // the directory is embedded above: its name is valid
	}
	return sub
}

// Sources lists the sample's files, oldest first, without Pincodes and Irregular. The
// content of a registry does not depend on the order in which they are imported.
func Sources() []Source {
	return []Source{
		{"companies-2021.csv.gz", asOf2021},
		{"companies-2021-variant.csv.gz", asOf2021},
		{"companies-2025.csv.gz", asOf2025},
		{"companies-2025-resaved.csv.gz", asOf2025},
		{"made-up-companies.csv.gz", asOf2025},
		{"made-up-documents.json.gz", asOf2025},
		{"made-up-llps-monthly.csv.gz", asOf2025},
		{"made-up-llps.csv.gz", asOf2025},
		{"made-up-directors.csv.gz", asOf2025},
		{"made-up-appointments.csv.gz", asOf2025},
		{"made-up-partners.csv.gz", asOf2025},
		{"made-up-contacts.csv.gz", asOf2025},
	}
}

// Extract writes the files of Registry to a folder that is there, since the importer
// reads files by their path.
func Extract(folder string) error {
	entries, err := fs.ReadDir(files, "registry")
	if err != nil {
		return fmt.Errorf("list the sample: %w", err)
	}
	for _, entry := range entries {
		data, err := files.ReadFile("registry/" + entry.Name())
		if err != nil {
			return fmt.Errorf("read the sample: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, entry.Name()), data, 0o644); err != nil {
			return fmt.Errorf("extract the sample: %w", err)
		}
	}
	return nil
}
