package importer

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkImportRegister imports the real companies and pincodes into an empty register,
// search index included.
func BenchmarkImportRegister(b *testing.B) {
	config := Config{
		Files: realFiles(b, "companies/datagov-rocwise-2025/*"), Pincodes: realFiles(b, "pincodes/*"),
		AsOf: "2025-06-01",
	}
	rows := int64(0)
	for b.Loop() {
		config.Registry = filepath.Join(b.TempDir(), "r.db")
		report, err := Run(context.Background(), config)
		require.NoError(b, err)
		rows += report.Total().Read
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
