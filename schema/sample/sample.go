// Package sample imports the embedded sample (testdata/registry) into a registry database: a
// few hundred real companies, and made-up directors, LLPs, partners and contacts. `regedge
// dev` serves it, and tests share it. testdata/README.md says where the data comes from.
package sample

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"regedge/schema/importer"
	"regedge/testdata"
)

// Source is one file of the sample, in a format of the importer.
type Source struct {
	Name string // in testdata.Registry
	AsOf string // date of its content, YYYY-MM-DD
}

const (
	asOf2021 = "2021-03-31"
	asOf2025 = "2025-05-05"
)

const (
	// Pincodes is the name of the directory of post offices.
	Pincodes = "pincodes.csv.gz"
	// Irregular is the name of a file whose rows the importer must reject, leave out or
	// repair. It is for tests: Sources does not list it.
	Irregular = "irregular-companies.csv.gz"
)

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

// Import imports the sample into the registry database in a file, which is made when missing:
// one run for the files of each date. now is the clock of the import; nil means time.Now. The
// report lists the files of all runs and names the last release.
func Import(ctx context.Context, registry string, now func() time.Time) (importer.Report, error) {
	folder, err := os.MkdirTemp("", "regedge-sample-")
	if err != nil {
		return importer.Report{}, fmt.Errorf("unpack the sample: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := os.CopyFS(folder, testdata.Registry()); err != nil {
		return importer.Report{}, fmt.Errorf("unpack the sample: %w", err)
	}
	var all importer.Report
	sources := Sources()
	for len(sources) > 0 {
		config := importer.Config{
			Registry: registry, AsOf: sources[0].AsOf, Now: now,
			Pincodes: []string{filepath.Join(folder, Pincodes)},
		}
		for len(sources) > 0 && sources[0].AsOf == config.AsOf {
			config.Files = append(config.Files, filepath.Join(folder, sources[0].Name))
			sources = sources[1:]
		}
		report, err := importer.Run(ctx, config)
		if err != nil {
			return all, fmt.Errorf("import the sample: %w", err)
		}
		all.Files, all.Elapsed = append(all.Files, report.Files...), all.Elapsed+report.Elapsed
		if report.Release != "" {
			all.Release = report.Release
		}
	}
	return all, nil
}
