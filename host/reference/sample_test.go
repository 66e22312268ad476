package reference_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/host/reference"
	"regedge/internal/testkit"
)

// runs says how a sample is run, by the name of its language: the tool that is needed,
// the name of the file, and the arguments before it.
var runs = map[string]struct {
	tool, file string
	arguments  []string
}{
	"curl":       {"sh", "call.sh", nil},
	"go":         {"go", "main.go", []string{"run"}},
	"python":     {"python3", "call.py", nil},
	"javascript": {"node", "call.mjs", nil},
}

// TestSamplesRun runs each sample as people copy it.
func TestSamplesRun(t *testing.T) {
	base := service(t)
	for _, sample := range reference.Samples(base + "/v1/companies/U72900ZZ2015PTC000001") {
		t.Run(sample.Language, func(t *testing.T) {
			out, err := runSample(t, sample)
			require.NoError(t, err, "%s", out)
			require.Contains(t, out, "SANDBOX EVERY FIELD (MADE-UP) PRIVATE LIMITED")
			require.Contains(t, out, "r****@e******.com")
		})
	}
}

// TestSamplesSayWhatIsWrong runs them where there is nothing to be found. curl shows the
// problem as it is.
func TestSamplesSayWhatIsWrong(t *testing.T) {
	base := service(t)
	for _, sample := range reference.Samples(base + "/v1/llps/ZZZ-9999") {
		t.Run(sample.Language, func(t *testing.T) {
			out, err := runSample(t, sample)
			require.Contains(t, out, "llp_not_found")
			if sample.Name != "curl" {
				require.Error(t, err)
			}
		})
	}
}

func runSample(t *testing.T, sample reference.Sample) (string, error) {
	t.Helper()
	run, ok := runs[sample.Name]
	require.True(t, ok, "no way to run %s", sample.Language)
	for _, tool := range []string{run.tool, map[string]string{"curl": "curl"}[sample.Name]} {
		if _, err := exec.LookPath(tool); tool != "" && err != nil {
			testkit.MissingTool(t, tool, " is not installed")
		}
	}
	path := filepath.Join(t.TempDir(), run.file)
	require.NoError(t, os.WriteFile(path, []byte(sample.Code), 0o600))
	out, err := exec.Command(run.tool, append(run.arguments, path)...).CombinedOutput()
	return string(out), err
}
