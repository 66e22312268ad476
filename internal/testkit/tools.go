package testkit

import (
	"fmt"
	"os"
	"testing"
)

// RequireTools is an environment variable. Set to "required", as .ci/run does, it makes a missing
// tool an error: on a machine where make tools ran, a skipped test would hide a failure.
const RequireTools = "REGEDGE_TOOLS"

// MissingTool skips a test that needs a tool of make tools which is not installed, and names it. With
// RequireTools it fails the test.
func MissingTool(t testing.TB, what ...any) {
	t.Helper()
	if toolsRequired() {
		t.Fatalf("%s=required, but: %s", RequireTools, fmt.Sprint(what...))
	}
	t.Skip("skipped: " + fmt.Sprint(what...))
}

func toolsRequired() bool { return os.Getenv(RequireTools) == "required" }
