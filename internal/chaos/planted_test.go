package chaos

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var planted = flag.Bool("planted", false, "build programs with a fault each, which TestHistory must find")

// fault is a mistake in one place of the code.
type fault struct{ name, file, code, wrong string }

var faults = []fault{
	{
		"a change is made again under its key", "replicate/metering/writer/idempotency.go",
		"if i == nil {\n\t\treturn nil\n\t}\n\tvar request", "if i != nil || i == nil {\n\t\treturn nil\n\t}\n\tvar request",
	},
	{
		"a revoked key stays", "replicate/metering/writer/projector.go",
		"err = p.drop(ctx, t, []any{changed.id})", "err = nil",
	},
	{
		"a batch is applied twice", "replicate/metering/ledger/sync.go",
		"s.Batch.Seq == e.current.Applied+1", "s.Batch.Seq <= e.current.Applied+1",
	},
	{
		"a 402 is believed for a minute", "replicate/metering/lease/charge.go",
		"g.pool.Kind == syncproto.NotFound || s.mayRefuse(now, a)", "g.pool.Kind == syncproto.NotFound || now-s.session.answered < 60_000",
	},
}

// TestHistoryFindsPlantedFaults runs programs that have a fault.
func TestHistoryFindsPlantedFaults(t *testing.T) {
	if !*planted {
		t.Skip("skipped without -planted: builds the program for each fault")
	}
	b, err := buildOnce()
	require.NoError(t, err)
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			broken := *b
			broken.program = f.build(t)
			for range 5 { // a fault shows only when an answer is lost at its moment
				if err := newWorld(t, newClusterOf(t, &broken)).run(historyLasts); err != nil {
					t.Log(err)
					require.ErrorContains(t, err, "explains the answers")
					return
				}
				*seed++
			}
			t.Error("not found")
		})
	}
}

// build builds the program with the fault.
func (f fault) build(t *testing.T) (program string) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir, path := t.TempDir(), filepath.Join(root, f.file)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), f.code), "%s has %q", f.file, f.code)
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(source), f.code, f.wrong, 1)), 0o600))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	program = filepath.Join(dir, "regedge")
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", program, "regedge/host").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
