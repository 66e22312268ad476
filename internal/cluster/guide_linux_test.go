package cluster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit/sampletest"
	"regedge/internal/testkit/sqldtest"
	"regedge/schema/sample"
)

// operatorsGuide is the guide, whose commands are run as they stand there.
type operatorsGuide struct {
	t      testing.TB
	blocks []string
}

func readGuide(t testing.TB) *operatorsGuide {
	t.Helper()
	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	g := &operatorsGuide{t: t}
	fenced := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	for _, found := range fenced.FindAllStringSubmatch(string(text), -1) {
		g.blocks = append(g.blocks, found[1])
	}
	for _, found := range regexp.MustCompile(`(?m)(?:^(?:    .*)?\n)+`).FindAllString(fenced.ReplaceAllString(string(text), ""), -1) {
		g.blocks = append(g.blocks, withoutIndent(found))
	}
	return g
}

// withoutIndent takes from all lines the indent of the first one.
func withoutIndent(block string) string {
	block = strings.Trim(block, "\n")
	indent := block[:len(block)-len(strings.TrimLeft(block, " "))]
	return strings.ReplaceAll(strings.TrimPrefix(block, indent), "\n"+indent, "\n") + "\n"
}

// commands returns the first block of commands that contains a text.
func (g *operatorsGuide) commands(contains string) string {
	g.t.Helper()
	for _, block := range g.blocks {
		if strings.Contains(block, contains) {
			return block
		}
	}
	require.Fail(g.t, "the guide has no such commands", contains)
	return ""
}

// centre follows the guide at the centre, up to the first account. run runs the script of a step.
func (g *operatorsGuide) centre(m *machine, run func(step, script string) string) {
	g.t.Helper()
	run("users", g.commands("for user in regedge-registry"))
	m.run("useradd --system --no-create-home --shell /usr/sbin/nologin regedge-edge")
	m.run(g.commands("mkdir -m 700 /etc/regedge/trust"))
	run("keys and certificates", g.commands("regedge trust machine primary --trust"))
	run("both primaries", g.commands("systemctl enable --now regedge-primary@registry"))
	run("the writer", g.commands("install -m 600 /dev/null /etc/regedge/writer.env"))
	m.before = g.commands("export REGEDGE_REGISTRY_TOKEN=")
	run("an account with credits and a key", g.commands("regedge account add Acme"))
}

// edge follows it at an edge, on the same machine.
func (g *operatorsGuide) edge(m *machine, run func(step, script string) string) {
	g.t.Helper()
	run("a node", strings.Split(g.commands("regedge node add mumbai"), "\n")[0])
	m.run(`cd /etc/regedge/trust; cp edge-mumbai.crt edge.crt; cp edge-mumbai.key edge.key; cd ..
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout edge-web.key -out edge-web.crt -days 90 \
  -subj /CN=api.example.org -addext subjectAltName=DNS:localhost`)
	run("its files", g.commands("REGEDGE_METRICS=127.0.0.1:9090"))
	starts := g.commands("chgrp regedge-edge")
	run("both replicas and the edge", starts[:strings.Index(starts, "curl ")])
}

// TestTheGuideUnderSystemd follows the operators' guide on a machine with systemd, as root, with the units as
// they are shipped: a centre and an edge, a release, what is said to do when something was lost, and a stop.
func TestTheGuideUnderSystemd(t *testing.T) {
	t.Parallel()
	regedge, err := program()
	require.NoError(t, err)
	g := readGuide(t)
	m := bootMachine(t, regedge, sqldtest.Program(t))
	m.giveFiles()

	m.giveRegistry()
	run := func(_, script string) string { return m.run(script) }
	g.centre(m, run)
	key := regexp.MustCompile(`reg_live_\w{30,}`).FindString(m.run("regedge key add 1"))
	require.NotEmpty(t, key)
	m.run(g.commands("install -m 600 /dev/null /etc/regedge/renew.env"))
	m.run("systemctl start regedge-renew")
	g.edge(m, run)
	m.until("curl -s --insecure https://localhost/readyz | grep 'its primary has not been filled yet'")

	push := "regedge push registry.db --primary-dir /var/lib/regedge/primary-registry"
	require.Contains(t, m.run(push), "the file is handed over whole")
	answers := `curl -sf --insecure https://localhost/v1/companies/` + sampletest.CompanyEveryField + ` -H "Authorization: Bearer ` + key + `"`
	m.until(answers)

	for line := range strings.Lines(m.journal()) {
		if !strings.Contains(line, "answered after a failure") { // as this test was, before the edge was ready
			require.NotContains(t, line, "ERROR", "nothing is one in a new cluster")
		}
	}

	// The edge is ready, and reads both files, which are younger than 3 s.
	const follows = `regedge status | grep -E 'live .* ([0-9]+ms|[12](\.[0-9])?s) +([0-9]+ms|[12](\.[0-9])?s) +[0-9]'`
	t.Run("the signing keys are root's alone", func(t *testing.T) {
		for _, key := range pki.SigningKeys {
			require.Equal(t, "root root 600", strings.TrimSpace(m.run("stat --format '%U %G %a' /etc/regedge/trust/"+key)), key)
		}
		require.Equal(t, "root root 700", strings.TrimSpace(m.run("stat --format '%U %G %a' /etc/regedge/trust")))
		for _, user := range []string{"regedge-registry", "regedge-access", "regedge-writer", "regedge-edge"} {
			m.run("test -r /etc/regedge/trust/ca.key && ! setpriv --reuid " + user + " --regid " + user + " --init-groups test -r /etc/regedge/trust/ca.key")
		}
	})
	t.Run("an edge's replicas are made anew", func(t *testing.T) {
		m.run("systemctl stop regedge-replica@registry regedge-replica@access; rm -r /var/lib/regedge/replica-*; systemctl start regedge-replica@registry regedge-replica@access; sleep 4")
		m.until(follows)
		m.run(answers)
	})
	t.Run("an empty primary", func(t *testing.T) {
		m.run(g.commands("rm -rf /var/lib/regedge/primary-access") + "sleep 4")
		m.until(follows)
		m.run("systemctl stop regedge-primary@registry; rm -rf /var/lib/regedge/primary-registry; systemctl start regedge-primary@registry")
		m.until(push)
		m.until(follows)
		m.run(answers)
	})
	t.Run("certificates are renewed", func(t *testing.T) {
		before := m.run("openssl x509 -noout -serial -in /etc/regedge/trust/edge.crt; openssl x509 -noout -serial -in /etc/regedge/writer.crt")
		m.run(g.commands("regedge trust machine edge-mumbai --trust"))
		m.run("cd /etc/regedge/trust; cp edge-mumbai.crt edge.crt; cp edge-mumbai.key edge.key; systemctl restart regedge-replica@registry regedge-replica@access")
		after := m.run("openssl x509 -noout -serial -in /etc/regedge/trust/edge.crt; openssl x509 -noout -serial -in /etc/regedge/writer.crt")
		for i, serial := range strings.Split(before, "\n") {
			require.NotEqual(t, serial, strings.Split(after, "\n")[i])
		}
		m.run("sleep 4")
		m.until(follows)
		m.run(answers)
		m.until("regedge doctor")
		m.run("regedge account list")
	})
	t.Run("the ledger comes back from a backup", func(t *testing.T) {
		m.run(`(umask 077; sqlite3 /var/lib/regedge/writer/ledger.db ".backup ledger-backup.db"); regedge credit add 1 7`)
		m.run(g.commands("ledger-backup.db /var/lib/regedge/writer/ledger.db"))
		m.until(`journalctl --no-pager --unit regedge-writer | grep 'every edge has reported since the ledger came back'`)
		m.until("regedge account list | grep Acme")
		m.until(answers)
	})
	t.Run("an edge's disk died", func(t *testing.T) {
		m.run("systemctl stop regedge-edge; rm -r /var/lib/regedge/edge; systemctl start regedge-edge")
		m.until("regedge node retire mumbai --old-epochs --yes && regedge node list | grep -E 'live +[0-9]+ +[0-9]+ +[0-9]+ +0 '")
		m.until(answers)
	})
	t.Run("nothing fails", func(t *testing.T) {
		const units = "regedge-edge regedge-replica@registry regedge-replica@access regedge-writer regedge-primary@registry regedge-primary@access regedge-renew"
		require.Empty(t, m.run("journalctl --no-pager --output short-unix | grep --before-context 30 'Scheduled restart job' || true"))
		m.run("systemctl stop " + units)
		for _, result := range strings.Fields(m.run("systemctl show --property Result --value " + units)) {
			require.Equal(t, "success", result, m.journal())
		}
		require.NotRegexp(t, `(?i)operation not permitted|permission denied|read-only file system`, m.journal())
	})
}

// giveFiles puts units there, and the names of the guide's machines.
func (m *machine) giveFiles() {
	m.t.Helper()
	units, err := filepath.Glob(filepath.Join(unitsDir, "*"))
	require.NoError(m.t, err)
	for _, unit := range units {
		content, err := os.ReadFile(unit)
		require.NoError(m.t, err)
		require.NoError(m.t, os.WriteFile(filepath.Join(m.files, "etc/systemd/system", filepath.Base(unit)), content, 0o644))
	}
	hosts := []byte("127.0.0.1 localhost centre.example.org\n")
	require.NoError(m.t, os.WriteFile(filepath.Join(m.files, "etc/hosts"), hosts, 0o644))
}

// giveRegistry puts the sample there.
func (m *machine) giveRegistry() {
	m.t.Helper()
	registry := filepath.Join(m.t.TempDir(), "registry.db")
	_, err := sample.Import(m.t.Context(), registry, nil)
	require.NoError(m.t, err)
	content, err := os.ReadFile(registry)
	require.NoError(m.t, err)
	require.NoError(m.t, os.WriteFile(filepath.Join(m.files, "root/registry.db"), content, 0o600))
}
