package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ended is a test that records how it was ended.
type ended struct {
	testing.TB
	skipped, failed bool
}

func (e *ended) Helper()               {}
func (e *ended) Skip(...any)           { e.skipped = true; panic(e) }
func (e *ended) Fatalf(string, ...any) { e.failed = true; panic(e) }

func TestAMissingToolIsAnErrorWhereToolsAreRequired(t *testing.T) {
	for value, required := range map[string]bool{"": false, "0": false, "required": true} {
		t.Setenv(RequireTools, value)
		e := new(ended)
		func() {
			defer func() { recover() }()
			MissingTool(e, "no such tool")
		}()
		require.Equal(t, ended{skipped: !required, failed: required}, ended{skipped: e.skipped, failed: e.failed}, value)
	}
}
