package simulation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a way in which the code could be wrong: one text of one file in another's
// place.
type mutant struct{ name, file, right, wrong string }

// mutants are breaks of the code that the simulation must find.
var mutants = []mutant{
	{"a charge is not journalled", "lease/charge.go", "\tb.logCharge(now, r, &v)\n", ""},
	{"a void is not journalled", "lease/void.go", "delete(b.doubted, sum)\n\t\tb.logVoid(id, e)", "delete(b.doubted, sum)"},
	{"request ids are forgotten at a restart", "lease/record.go", "account(e.account).used(e.at)\n\tb.recent.put(e.named(b.recent.sum(id)))", "account(e.account).used(e.at)"},
	{"a repeated row grants again", "lease/holding.go", "added := max(r.Granted-h.granted, 0)", "added := r.Granted"},
	{"what was returned can still be spent", "lease/batch.go", "h.returned += r.Units", "_ = r.Units"},
	{"an old refusal is believed", "lease/charge.go", "(g.pool.Kind == syncproto.NotFound || b.Connected(now))", "true"},
	{"a snapshot forgets the batch under way", "lease/snapshot.go", "if b.inflight != nil {\n\t\te.Byte(recordInflight)", "if b.inflight == nil {\n\t\treturn\n\t}\n\tif b.sealed == 0 {\n\t\te.Byte(recordInflight)"},
	{"an older copy's usage is reported again", "lease/apply.go", "if forked {\n\t\tb.carried", "if forked && b == nil {\n\t\tb.carried"},
	{"a batch leaves before it is durable", "meter/run.go", "if err := m.journal.Flushed(); err != nil {", "if err := error(nil); err != nil {"},
	{"reported batches are not kept", "meter/run.go", "return m.journal.Keep(batch.Epoch, batch.Batch, syncproto.Day(m.now()))", "return error(nil)\n}\n\nfunc unused(now int64) int32 {\n\treturn syncproto.Day(now)"},
	{"a failed sync is taken for done", "journal/journal.go", "j.stuck = fmt.Errorf(\"sync journal: %w\", err)\n\t\treturn j.stuck", "return nil"},
	{"a failed write is not cut off", "journal/journal.go", "j.unclean = n > 0 && j.file.Truncate(j.size) != nil", "j.unclean = n > 0 && j.size < 0"},
	{"a batch is applied twice", "ledger/sync.go", "s.Batch.Seq == e.current.Applied+1", "s.Batch.Seq <= e.current.Applied+1"},
	{"the sequence applied is not stored", "ledger/rows.go", "epoch.Number, int64(epoch.Boot), epoch.Applied,", "epoch.Number, int64(epoch.Boot), uint64(0),"},
	{"an older copy of a disk is not fenced", "ledger/sync.go", "case h.Sealed < known.Applied:", "case h.Sealed < known.Applied && l == nil:"},
	{"leases that ended are granted again", "ledger/settle.go", "\tstarved := false\n", "\tstarved := false\n\tfor _, h := range p.leases {\n\t\tif h.Until < now && h.Outstanding() > 0 {\n\t\t\tl.giveBack(h, h.Outstanding())\n\t\t}\n\t}\n"},
	{"a lease that ended is never extended", "ledger/settle.go", "if h.Outstanding() > 0 && h.Until-now < extendMillis {", "if units > 0 && h.Until-now < extendMillis {"},
	{"a restored ledger grants at once", "ledger/settle.go", "return !l.Restoring && !h.Lost", "return !h.Lost"},
	{"late reports are debited a second time", "ledger/units.go", "case h.Lost:\n\t\tp.Lost -= units", "case h.Lost && l == nil:\n\t\tp.Lost -= units"},
	{"an adjustment takes what is leased", "ledger/units.go", "min(p.Deducting, max(p.Left(), 0))", "p.Deducting"},
	{"a second writer is not fenced", "ledger/store.go", "err != nil || n != 1 {", "err != nil || n > 1 {"},
	{"a commit that failed is answered", "writer/commit.go", "w.reload(ctx)\n\treturn fmt.Errorf(\"%w: %w\", ErrUnavailable, err)", "return nil"},
}

// mutantSeeds is within how many seeds each mutant has to be found: a third of those that
// TestSeeds runs, so that other seeds find it too.
const mutantSeeds = 660

// TestTheSimulationFindsMutants breaks the code and expects the simulation to see it.
func TestTheSimulationFindsMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: builds the simulation once for every mutant")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			out := m.simulate(t)
			_, found, _ := strings.Cut(out, "-run TestSeed -seed ")
			require.NotEmpty(t, found, "not found in %d seeds:\n%s", mutantSeeds, out[max(0, len(out)-4000):])
			t.Logf("found by seed %s", strings.Fields(found)[0])
		})
	}
}

// simulate runs the simulation with the mutant in the place of the right code, and returns
// what it printed.
func (m mutant) simulate(t *testing.T) string {
	path, err := filepath.Abs(filepath.Join("../../replicate/metering", filepath.FromSlash(m.file)))
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(content), m.right), "%s has changed: the mutant has to follow", m.file)
	dir := t.TempDir()
	broken, overlay, program := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	require.NoError(t, os.WriteFile(broken, []byte(strings.Replace(string(content), m.right, m.wrong, 1)), 0o600))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: broken}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := exec.Command(program, "-test.run=^TestSeeds$", "-test.timeout=5m", "-seeds", strconv.Itoa(mutantSeeds), "-from", strconv.Itoa(*firstRun))
	out, err = run.CombinedOutput()
	require.Error(t, err, "the simulation passes")
	return string(out)
}
