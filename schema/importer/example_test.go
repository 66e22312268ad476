package importer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"regedge/schema/importer"
)

// An import makes the registry database if it is missing. The same import again changes
// nothing, and writes no release.
func Example() {
	folder, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	companies := filepath.Join(folder, "companies.csv")
	const text = "CIN,CompanyName,CompanyStatus\n" +
		"U72900KA2015PTC990001,MADE-UP EXAMPLE PRIVATE LIMITED,Active\n" +
		"not a CIN,MADE-UP OTHER PRIVATE LIMITED,Active\n"
	if err := os.WriteFile(companies, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	config := importer.Config{
		Registry: filepath.Join(folder, "registry.db"),
		Files:    []string{companies},
		AsOf:     "2025-05-05",
	}
	for range 2 {
		report, err := importer.Run(context.Background(), config)
		if err != nil {
			log.Fatal(err)
		}
		total := report.Total()
		fmt.Println(total.New, "new,", total.Unchanged, "unchanged, rejected:", total.Rejected)
		fmt.Println("a release:", report.Release != "")
	}
	// Output:
	// 1 new, 0 unchanged, rejected: map[invalid CIN:1]
	// a release: true
	// 0 new, 1 unchanged, rejected: map[invalid CIN:1]
	// a release: false
}
