package reference_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// baseline is the document of the last release. A release that changes the document
// copies it there; until then no change may break a client of it.
const baseline = "../../testdata/openapi-baseline.yaml"

func TestTheDocumentBreaksNoClient(t *testing.T) {
	tool := compareTool(t)
	require.Empty(t, breakingChanges(t, tool, "openapi.yaml"))

	document, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	for name, change := range map[string][2]string{
		"a path that is gone":            {"  /v1/directors/{din}:", "  /v1/people/{din}:"},
		"a field that may be missing":    {"required: [request_id, credits_remaining, sandbox]", "required: [request_id, credits_remaining]"},
		"a field that may become null":   {"          type: boolean\n          description: True when", "          type: [boolean, 'null']\n          description: True when"},
		"a parameter with a lower limit": {"            maximum: 10\n            default: 5", "            maximum: 9\n            default: 5"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(string(document), change[0], change[1], 1)
			require.NotEqual(t, string(document), changed, "the change changes nothing")
			path := filepath.Join(t.TempDir(), "openapi.yaml")
			require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
			require.NotEmpty(t, breakingChanges(t, tool, path), "the check does not see it")
		})
	}
}

// compareTool builds oasdiff, which is pinned in a module of its own so that the program
// carries none of its dependencies.
func compareTool(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "oasdiff")
	build := exec.Command("go", "build", "-o", tool, "github.com/oasdiff/oasdiff")
	build.Dir = "tools"
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("oasdiff cannot be built (its modules are downloaded on first use): %s", out)
	}
	return tool
}

// breakingChanges lists what breaks a client of the baseline, "" when nothing does.
func breakingChanges(t *testing.T, tool, revision string) string {
	t.Helper()
	command := exec.Command(tool, "breaking", "--fail-on", "ERR", "--format", "singleline", baseline, revision)
	out, err := command.CombinedOutput()
	if err == nil {
		return ""
	}
	require.Contains(t, string(out), "error", "oasdiff failed for another reason than a breaking change: %s", out)
	return string(out)
}
