package cluster_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
)

// The story of docs/operations.md, "The whole way": its steps beyond those of the guide.
const (
	pushFile  = "regedge push registry.db --primary-dir /var/lib/regedge/primary-registry"
	nextFiles = "regedge import --registry registry.db --as-of 2025-06-02 new/*.csv"
)

// BenchmarkStory follows the operators' guide from empty machines to a registry that is pushed, to a mistake that is rolled
// back, and prints how long each command took, as the table of docs/operations.md.
func BenchmarkStory(b *testing.B) {
	regedge, err := program()
	require.NoError(b, err)
	g := readGuide(b)
	for b.Loop() {
		m := bootMachine(b, regedge, sqldtest.Program(b))
		m.giveFiles()
		s := &story{m: m}
		files := m.run(fmt.Sprintf("regedge generate --companies %d --out official", *releaseCompanies))
		g.centre(m, s.step)
		for n, command := range regexp.MustCompile(`(?m)^  (regedge import .*)$`).FindAllStringSubmatch(files, -1) {
			s.step([]string{"`regedge import`, the current files", "`regedge import`, the older files"}[n], command[1])
		}
		g.edge(m, s.step)
		s.command("regedge push registry.db --dry-run")
		s.command(pushFile)
		s.shown("the edge is ready", `curl -sf --insecure https://localhost/readyz`)
		key := regexp.MustCompile(`reg_live_\w{30,}`).FindString(m.run("regedge key add 1"))
		require.NotEmpty(b, key)
		// A company whose amounts the next files have in the wrong unit.
		m.run(`mkdir new; for f in official/companies-*.csv; do
[ "$(wc -l < "$f")" -lt 200 ] || awk 'NR == 1 || NR % 100 == 0' "$f" | sed -E 's/,([0-9]+)\.00,([1-9][0-9]*)\.00,/,\100000.00,\200000.00,/' > new/"$(basename "$f")"; done`)
		cin := strings.Split(m.run(`grep -hE '^[LU][0-9]{5}[A-Z]{2}[0-9]{4}.*,[1-9][0-9]*00000\.00,[1-9][0-9]*00000\.00,' new/companies-mumbai.csv | head -1`), ",")[0]
		answer := `curl -sf --insecure https://localhost/v1/companies/` + cin + ` -H "Authorization: Bearer ` + key + `"`
		right := m.run(answer + ` | grep -o '"paid_up_capital":[^,]*'`)
		shows := func(want string) string { return answer + " | grep -F '" + want + "'" }
		s.command(nextFiles)
		s.command("regedge push registry.db --dry-run")
		s.command(pushFile)
		s.shown("the edge shows the wrong amounts", shows(right+"00000,"))
		s.command("regedge rollback --releases releases --yes")
		s.shown("the edge shows the right ones again", shows(right+","))
		s.command("regedge status")
		fmt.Printf("\n%d companies\n\n| step | took |\n|---|---|\n%s", *releaseCompanies, s.table.String())
	}
}

// story notes how long steps take.
type story struct {
	m     *machine
	table strings.Builder
}

// step runs a script.
func (s *story) step(name, script string) string {
	s.m.t.Helper()
	began := time.Now()
	said := s.m.run(script)
	s.row(name, time.Since(began))
	return said
}

// command is a step of one command.
func (s *story) command(line string) { s.m.t.Helper(); s.step("`"+line+"`", line) }

// shown waits until a script succeeds.
func (s *story) shown(what, script string) {
	s.m.t.Helper()
	began := time.Now()
	s.m.until(script)
	s.row(what, time.Since(began))
}

func (s *story) row(what string, took time.Duration) {
	row := fmt.Sprintf("| %s | %.1f s |\n", what, took.Seconds())
	fmt.Fprint(os.Stderr, row)
	s.table.WriteString(row)
}
