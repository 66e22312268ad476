package reference_test

import (
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/host/reference"
	"regedge/internal/testkit/examplestest"
	"regedge/schema/importer"
	"regedge/schema/sample"
	"regedge/testdata"
)

const root = "../.." // of the repository

func TestEveryExampleIsTrueWithTheSample(t *testing.T) {
	examplestest.Check(t, service(t), root)
}

// TestTheExampleOfTheStartPageIsAnAnswer, but for its request id.
func TestTheExampleOfTheStartPageIsAnAnswer(t *testing.T) {
	page := bodyOf(t, get(t, newSite(t, reference.Config{}), "/"))
	shown := regexp.MustCompile(`(?s)id="answer"[^>]*><code>(.*?)</code>`).FindStringSubmatch(page)
	require.NotNil(t, shown)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, service(t)+"/v1/search/companies?name=sandbox+every+field", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+ident.SandboxKey)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answers := []string{html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(shown[1], "")), bodyOf(t, response)}
	for i := range answers {
		answers[i] = regexp.MustCompile(`"request_id": *"\w+"`).ReplaceAllString(answers[i], `"request_id": ""`)
	}
	require.JSONEq(t, answers[1], answers[0])
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
