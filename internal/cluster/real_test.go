package cluster_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/importer"
)

// official are the real files, where a checkout has them beside it.
const official = "../../../shared/data"

func TestTheRealCompaniesReachEveryEdge(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(official + "/companies/datagov-rocwise-2025/*.csv.gz")
	require.NoError(t, err)
	if len(files) == 0 || testing.Short() {
		t.Skip("the official files are not beside this checkout, or the run is a short one")
	}
	pincodes, err := filepath.Glob(official + "/pincodes/*.csv.gz")
	require.NoError(t, err)
	w := start(t)
	registry := filepath.Join(t.TempDir(), "registry.db")
	_, err = importer.Run(t.Context(), importer.Config{Registry: registry, Files: files, Pincodes: pincodes, AsOf: "2025-05-05"})
	require.NoError(t, err)
	took, arrived, said := w.push(registry)
	t.Logf("%v, at both edges %v later\n%s", took, arrived, said)
	w.inStep()
	single := w.single("single", registry)
	_, key := w.account(1)
	for _, e := range append(w.Edges, single) {
		require.Eventually(t, func() bool {
			a, err := fetch(http.DefaultClient, e.URL, "/v1/search/companies?name=nothing+has+this+name", key)
			return err == nil && a.status == 200
		}, patience, 20*time.Millisecond)
	}
	for _, path := range some(t, registry) {
		want, err := fetch(http.DefaultClient, single.URL, path, key)
		require.NoError(t, err)
		require.Equal(t, 200, want.status, path)
		for _, e := range w.Edges {
			got, err := fetch(http.DefaultClient, e.URL, path, key)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s at %s", path, e.Name)
		}
	}
}

// some are lookups and searches spread over a registry.
func some(t *testing.T, registry string) (paths []string) {
	t.Helper()
	db, err := schema.OpenFile(registry, true)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query("SELECT cin, company_name FROM company WHERE rowid % 200 = 0")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var cin, name string
		require.NoError(t, rows.Scan(&cin, &name))
		first, _, _ := strings.Cut(name, " ")
		paths = append(paths, "/v1/companies/"+cin, "/v1/search/companies?limit=10&name="+url.QueryEscape(first))
	}
	require.NoError(t, rows.Err())
	require.Greater(t, len(paths), 100)
	return paths
}
