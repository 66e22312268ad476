package generate

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/importer"
)

func TestWhatIsGeneratedImports(t *testing.T) {
	for _, how := range []Compression{Plain, Gzip, Zstd} {
		t.Run("compressed by "+string(how), func(t *testing.T) {
			out := t.TempDir()
			summary, err := Run(context.Background(), Config{Companies: 3000, Seed: 9, Out: out, Compress: how, OlderShare: 0.3})
			require.NoError(t, err)
			registry := filepath.Join(out, "registry.db")
			importGenerated(t, out, registry, summary)

			db, err := schema.OpenReadOnly(registry)
			require.NoError(t, err)
			defer db.Close()
			for table, least := range map[string]int{"company": 2990, "llp": 174, "director": 2900, "appointment": 6500, "partner": 350, "pincode": 250} {
				var count int
				require.NoError(t, db.QueryRow("SELECT count(*) FROM "+table).Scan(&count))
				require.GreaterOrEqual(t, count, least, table)
			}
			var placed int
			require.NoError(t, db.QueryRow(`SELECT count(*) FROM company
				WHERE city IS NOT NULL AND address_line IS NOT NULL AND state IS NOT NULL AND district IS NOT NULL`).Scan(&placed))
			require.InDelta(t, 0.87, float64(placed)/3000, 0.03)
		})
	}
}

// importGenerated imports the files date by date and accepts no refusal but of the
// malformed CINs, and of contacts of their companies.
func importGenerated(t *testing.T, out, registry string, summary Summary) {
	t.Helper()
	rows := map[string]int64{}
	for _, file := range summary.Files {
		rows[filepath.Join(out, file.Name)] = file.Rows
	}
	for _, asOf := range []string{olderDay, lastDay} {
		config := importer.Config{Registry: registry, AsOf: asOf}
		for _, file := range summary.Files {
			switch file.AsOf {
			case asOf:
				config.Files = append(config.Files, filepath.Join(out, file.Name))
			case "":
				config.Pincodes = append(config.Pincodes, filepath.Join(out, file.Name))
			}
		}
		report, err := importer.Run(context.Background(), config)
		require.NoError(t, err)
		for _, file := range report.Files {
			require.Equal(t, rows[file.Name], file.Read, file.Name)
			rejected := file.Rejected
			delete(rejected, "invalid CIN")
			delete(rejected, "company not held")
			require.Empty(t, rejected, file.Name)
			require.Empty(t, file.Unread, file.Name)
		}
	}
}
