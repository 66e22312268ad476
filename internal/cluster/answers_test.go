package cluster_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/cluster"
	"regedge/internal/conformance"
	"regedge/replicate/metering/writer"
	"regedge/schema"
	"regedge/schema/importer"
)

// paths are the requests of all vectors.
func paths(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/vectors/*.txt")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		parsed, err := conformance.Parse(file)
		require.NoError(t, err, name)
		require.NoError(t, file.Close())
		for _, v := range parsed.Vectors {
			for _, e := range v.Exchanges {
				method, path, _ := strings.Cut(e.Request[0], " ")
				if method == http.MethodGet && strings.HasPrefix(path, "/v1/") && !seen[path] {
					seen[path] = true
					list = append(list, path)
				}
			}
		}
	}
	require.Greater(t, len(list), 50)
	return list
}

func TestEveryEdgeAnswersAsASingleProcess(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.push(f.before)
	f.push(f.after)
	f.inStep()
	_, err := f.Client.AddToken(t.Context(), "metrics", writer.RoleRead, time.Hour) // it has metrics of its own
	require.NoError(t, err)
	f.alarmsUseMetrics()
	f.dashboardUsesMetrics()
	f.metricsAreExplained()
	f.statusShowsRelease()
	single := f.single("single", f.after)
	all := paths(t)
	f.answerAlike(single, "", all)
	f.answerAlike(single, "reg_sandbox_public", all[:15]) // the sandbox has 30 requests a minute
	// A key may find nothing 100 times a day, and all three processes count.
	for some := range slices.Chunk(all, 12) {
		_, key := f.account(1)
		f.answerAlike(single, key, some)
	}
}

// answerAlike requires that every edge answers each path as a single process does.
func (f *fixture) answerAlike(single *cluster.Edge, key string, paths []string) {
	f.t.Helper()
	for _, e := range append(f.Edges, single) {
		require.Eventually(f.t, func() bool {
			a, err := fetch(http.DefaultClient, e.URL, "/v1/search/companies?name=nothing+has+this+name", key)
			return err == nil && (a.status == 200 || key == "" && a.status == 401)
		}, patience, 20*time.Millisecond, "the key reaches every edge")
	}
	release := f.release()
	for _, path := range paths {
		want := f.ask(single, path, key)
		for _, e := range f.Edges {
			got := f.ask(e, path, key)
			require.Equal(f.t, want, got, "%s at %s", path, e.Name)
			if got.status == 200 {
				require.Equal(f.t, release, got.release)
			}
		}
	}
}

// ask sends a request to an edge. Requests that waited for the edges to become ready may have used up
// the rate limit; then it waits for the next minute.
func (f *fixture) ask(e *cluster.Edge, path, key string) answer {
	f.t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		a, err := fetch(http.DefaultClient, e.URL, path, key)
		require.NoError(f.t, err)
		if a.status != http.StatusTooManyRequests {
			return a
		}
		require.Less(f.t, time.Since(began), patience, "%s at %s: %s", path, e.Name, a.data)
	}
}

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
	f := start(t)
	registry := filepath.Join(t.TempDir(), "registry.db")
	_, err = importer.Run(t.Context(), importer.Config{Registry: registry, Files: files, Pincodes: pincodes, AsOf: "2025-05-05"})
	require.NoError(t, err)
	took, arrived, said := f.push(registry)
	t.Logf("%v, at both edges %v later\n%s", took, arrived, said)
	f.inStep()
	single := f.single("single", registry)
	_, key := f.account(1)
	for _, e := range append(f.Edges, single) {
		require.Eventually(t, func() bool {
			a, err := fetch(http.DefaultClient, e.URL, "/v1/search/companies?name=nothing+has+this+name", key)
			return err == nil && a.status == 200
		}, patience, 20*time.Millisecond)
	}
	for _, path := range some(t, registry) {
		want, err := fetch(http.DefaultClient, single.URL, path, key)
		require.NoError(t, err)
		require.Equal(t, 200, want.status, path)
		for _, e := range f.Edges {
			got, err := fetch(http.DefaultClient, e.URL, path, key)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s at %s", path, e.Name)
		}
	}
}

// some are lookups and searches spread over a registry.
func some(t *testing.T, registry string) (paths []string) {
	t.Helper()
	db, err := schema.OpenReadOnly(registry)
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

// TestAnAccountIsRefusedOnceItsCreditsAreSpentElsewhere, and does not wait in vain first: the edge that has spent them says so
// as soon as the writer asks for them back.
func TestAnAccountIsRefusedOnceItsCreditsAreSpentElsewhere(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.push(f.before)
	f.plan()
	const accounts, credits = 6, 3
	cin, refused := f.watched()[0], 0
	for n := range accounts {
		id, key, err := f.addAccount(n)
		require.NoError(t, err)
		made, err := f.Client.Account(t.Context(), id)
		require.NoError(t, err)
		_, err = f.Client.ChangeCredits(t.Context(), id, writer.CreditChange{Amount: credits - made.Balance})
		require.NoError(t, err)
		lookup := func(i int) int {
			a, err := fetch(http.DefaultClient, f.Edges[i%len(f.Edges)].URL, "/v1/companies/"+cin, key)
			require.NoError(t, err)
			return a.status
		}
		for spent := 0; spent < credits; {
			switch status := lookup(spent); status {
			case http.StatusOK:
				spent++
			case http.StatusUnauthorized, http.StatusServiceUnavailable: // the key has not arrived, or the machine is busy
				time.Sleep(20 * time.Millisecond)
			default:
				require.Failf(t, "a lookup that is paid for is refused", "status %d", status)
			}
		}
		if lookup(credits) == http.StatusPaymentRequired {
			refused++
		}
	}
	require.GreaterOrEqual(t, refused, accounts/2, "accounts whose first refusal was no 503")
}
