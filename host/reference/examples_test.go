package reference_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/examplestest"
	"regedge/schema/importer"
	"regedge/schema/sample"
	"regedge/testdata"
)

const root = "../.." // of the repository

func TestEveryExampleIsTrueWithTheSample(t *testing.T) {
	examplestest.Check(t, service(t), root)
}

// TestEveryExampleIsTrueWithOfficialFilesAlone serves real companies and nothing that is made up: all
// official files of 2025 where a checkout has them beside it, else those of the sample.
func TestEveryExampleIsTrueWithOfficialFilesAlone(t *testing.T) {
	service(t) // builds the program
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, testdata.Registry()))
	files := []string{filepath.Join(folder, "companies-2025.csv.gz")}
	pincodes := []string{filepath.Join(folder, sample.Pincodes)}
	if beside, err := filepath.Glob(root + "/../shared/data/companies/datagov-rocwise-2025/*.csv.gz"); err == nil && len(beside) > 0 && !testing.Short() {
		files = beside
	}
	registry := filepath.Join(folder, "registry.db")
	_, err := importer.Run(t.Context(), importer.Config{Registry: registry, Files: files, Pincodes: pincodes, AsOf: "2025-05-05"})
	require.NoError(t, err)
	base, err := startDev(filepath.Join(folder, "data"), "--registry", registry)
	require.NoError(t, err)
	examplestest.Check(t, base, root)
}
