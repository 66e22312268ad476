package cli

import (
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
)

// loseAnswers returns the address of a proxy to the writer that forwards every request, but drops the
// first answers to changes. asked counts the changes.
func (c *centre) loseAnswers(t *testing.T, first int64) (address string, asked *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(c.url())
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	asked = &atomic.Int64{}
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method != http.MethodGet && asked.Add(1) <= first {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL, asked
}

// TestAChangeIsRepeatedUntilItIsAnswered loses the first answers to a purchase, which was booked.
func TestAChangeIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	id, _ := c.account(t, 1)
	proxy, _ := c.loseAnswers(t, 2)
	add := start("credit", "add", "1", "100", "--writer", proxy, "--token", operatorToken)
	require.Zero(t, add.halted(), add.stderr.String())
	require.Equal(t, 2, strings.Count(add.stderr.String(), "trying again"), add.stderr.String())
	a, err := c.client.Account(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, 101, a.Bought)
}

// TestEveryChangeIsRepeatedUntilItIsAnswered runs each command that changes
// something, and loses the first answer.
func TestEveryChangeIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	missing := changingCommands(t)
	for _, args := range [][]string{
		{"account", "add", "Acme"},
		{"account", "create", "Another"},
		{"account", "change", "1", "--name", "Acme Data"},
		{"account", "invite", "owner@example.com", "--account", "1"},
		{"account", "suspend", "1", "--yes"},
		{"account", "resume", "1"},
		{"key", "add", "1"},
		{"key", "create", "1"},
		{"key", "rename", "1", "main"},
		{"key", "expire", "1", "--never"},
		{"key", "allow", "1", "192.0.2.0/24"},
		{"key", "limit", "1", "--per-minute", "10"},
		{"key", "rotate", "1", "--yes"},
		{"key", "revoke", "1", "--yes"},
		{"plan", "add", "own", "--per-minute", "5", "--monthly-volume", "100"},
		{"plan", "change", "own", "--per-minute", "6"},
		{"credit", "add", "1", "100"},
		{"credit", "take", "1", "10", "--yes"},
		{"credit", "resolve", "01M"},
		{"trust", "operator", "add", "ci"},
		{"trust", "operator", "end", "ci"},
		{"node", "add", "one"},
		{"node", "token", "one"},
		{"node", "retire", "one", "--yes"},
	} {
		command := strings.Join(args, " ")
		missing = slices.DeleteFunc(missing, func(path string) bool { return strings.HasPrefix(command, path) })
		if args[1] == "resolve" {
			ledger, err := sql.Open("sqlite3", "file:"+c.path("ledger.db")+"?_pragma=busy_timeout(10000)")
			require.NoError(t, err)
			_, err = ledger.Exec(`INSERT INTO unresolved (id, account, key, node, at) VALUES ('01M', 1, 1, 'one', 1)`)
			require.NoError(t, errors.Join(err, ledger.Close()))
		}
		proxy, asked := c.loseAnswers(t, 1)
		p := start(append(args, "--writer", proxy, "--token", operatorToken)...)
		require.Zero(t, p.halted(), "%s: %s", command, p.stderr)
		require.EqualValues(t, 2, asked.Load(), "%s: %s", command, p.stderr)
	}
	require.Empty(t, missing, "commands that this test does not run")
	a, err := c.client.Account(t.Context(), 1)
	require.NoError(t, err)
	require.EqualValues(t, 91, a.Bought+a.Compensated, "100 bought, 10 taken, and one refunded: each once")
}

// TestAnUncertainInvitationIsFoundWhereTheHintSays: the list of accounts has no operators.
func TestAnUncertainInvitationIsFoundWhereTheHintSays(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	proxy, _ := c.loseAnswers(t, 1<<40)
	invite := start("account", "invite", "olga+1@example.org", "--operator", "--writer", proxy, "--token", operatorToken)
	require.True(t, invite.await(func() bool { return strings.Contains(invite.stderr.String(), "trying again") }), invite.stderr)
	require.NotZero(t, invite.halt())
	look := regexp.MustCompile(`hint: regedge (.+) shows whether it was made`).FindStringSubmatch(invite.stderr.String())
	require.Len(t, look, 2, invite.stderr)
	code, said := ran(append(strings.Fields(look[1]), "--writer", c.url(), "--token", operatorToken)...)
	require.Equal(t, exitOK, code, said)
	require.Contains(t, said, "olga+1@example.org")
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write(p []byte) (int, error) {
	if len(p) == 0 { // a table without cells writes so, which no disk refuses
		return 0, nil
	}
	return 0, syscall.ENOSPC
}

// TestAChangeThatCannotBePrintedIsToldAsMade: somebody who is told that it failed would make it again.
func TestAChangeThatCannotBePrintedIsToldAsMade(t *testing.T) {
	c := startCentre(t)
	id, _ := c.account(t, 10)
	args := []string{"credit", "add", strconv.FormatInt(id, 10), "100", "--writer", c.url(), "--token", operatorToken}
	said := new(testkit.Log)
	full := &Main{Stdin: strings.NewReader(""), Stdout: fullDisk{}, Stderr: said, Environ: func() []string { return nil }, Now: time.Now}
	require.Equal(t, exitFailure, full.Run(t.Context(), args))
	require.Contains(t, said.String(), "the change was made, but what came of it can't be printed: no space left on device")
	key := regexp.MustCompile(`--idempotency-key \S+`).FindString(said.String())
	require.NotEmpty(t, key, said.String())

	again := start(append(args, strings.Fields(key)...)...)
	require.Equal(t, exitOK, endOf(t, again), again.stderr)
	require.Contains(t, again.stdout.String(), "110")
	a, err := c.client.Account(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, 110, a.Balance, "once")
}

// TestAChangeThatCannotBePrintedIsRepeatedAsItWas: a time relative to now would be another one at the repeat.
func TestAChangeThatCannotBePrintedIsRepeatedAsItWas(t *testing.T) {
	c := startCentre(t)
	id, _ := c.account(t, 10)
	said := new(testkit.Log)
	full := &Main{Stdin: strings.NewReader(""), Stdout: fullDisk{}, Stderr: said, Environ: func() []string { return nil }, Now: time.Now}
	require.Equal(t, exitFailure, full.Run(t.Context(), []string{"key", "add", strconv.FormatInt(id, 10), "--expires", "720h", "--writer", c.url(), "--token", operatorToken}))
	require.Regexp(t, `--idempotency-key \S+ and --expires \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, said.String())
}

// TestWhatCannotBePrintedIsAFailure: a script that keeps a list would take a part of it, or nothing, for all.
func TestWhatCannotBePrintedIsAFailure(t *testing.T) {
	c := startCentre(t)
	account, _ := c.account(t, 10)
	id := strconv.FormatInt(account, 10)
	trust := filepath.Join(t.TempDir(), "trust")
	require.Equal(t, exitOK, endOf(t, start("trust", "init", "--trust", trust)))
	calls := []string{"--writer", c.url(), "--token", operatorToken}
	for _, command := range []string{
		"account list", "account list --json", "key list " + id, "key requests", "plan list", "credit list " + id, "credit doubts", "audit",
		"usage", "usage --csv", "usage --json", "usage --by day --csv --account " + id, "usage --by day --account " + id,
		"node list", "status", "status --json", "status --explain", "doctor client", "doctor client --json", "trust operator list",
		"trust renew --trust " + trust, "trust token access --trust " + trust, "trust machine writer --trust " + trust, "version", "completion bash",
	} {
		args := strings.Fields(command)
		if !slices.ContainsFunc(args, func(word string) bool {
			return slices.Contains([]string{"token", "machine", "version", "completion"}, word)
		}) {
			args = append(args, calls...)
		}
		said := new(testkit.Log)
		full := &Main{Stdin: strings.NewReader(""), Stdout: fullDisk{}, Stderr: said, Environ: func() []string { return nil }, Now: time.Now}
		assert.Equal(t, exitFailure, full.Run(t.Context(), args), command)
		assert.Equal(t, 1, strings.Count(said.String(), "no space left on device"), "%s: %s", command, said)
	}
}

// commandTree is the command line.
func commandTree(t *testing.T) *kong.Node {
	t.Helper()
	var line commands
	parser, err := kong.New(&line, kong.DefaultEnvars(environmentPrefix), kong.ExplicitGroups(groups), kong.Bind(&Main{}),
		kong.Vars{"default_plan": writer.DefaultPlan})
	require.NoError(t, err)
	return parser.Model.Node
}

// changingCommands lists the commands that take the name of a change, as "account add".
func changingCommands(t *testing.T) (paths []string) {
	t.Helper()
	for _, leaf := range commandTree(t).Leaves(false) {
		for _, flag := range slices.Concat(leaf.AllFlags(true)...) {
			if flag.Name == "idempotency-key" {
				path := leaf.Name
				for at := leaf.Parent; at.Parent != nil; at = at.Parent {
					path = at.Name + " " + path
				}
				paths = append(paths, path)
			}
		}
	}
	require.NotEmpty(t, paths)
	return paths
}

// TestAnUncertainChangeIsToldAsSuch interrupts a command that gets no answer. Its error names the
// command that shows the outcome, and a retry under the idempotency key makes the change once.
func TestAnUncertainChangeIsToldAsSuch(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	id, _ := c.account(t, 1)
	proxy, _ := c.loseAnswers(t, 1<<40)
	add := start("credit", "add", "1", "100", "--writer", proxy, "--token", operatorToken)
	require.True(t, add.await(func() bool { return strings.Contains(add.stderr.String(), "trying again") }), add.stderr.String())
	require.NotZero(t, add.halt())
	said := add.stderr.String()
	require.Contains(t, said, writer.ErrUncertain.Error())
	require.Contains(t, said, "regedge credit list 1 shows whether")
	key := regexp.MustCompile(`--idempotency-key (\S+)`).FindStringSubmatch(said)
	require.NotNil(t, key, said)

	again := start("credit", "add", "1", "100", "--writer", c.url(), "--token", operatorToken, "--idempotency-key", key[1])
	require.Zero(t, again.halted(), again.stderr.String())
	a, err := c.client.Account(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, 101, a.Bought)

	other := start("credit", "add", "1", "101", "--writer", c.url(), "--token", operatorToken, "--idempotency-key", key[1])
	require.NotZero(t, other.halted())
	require.Contains(t, other.stderr.String(), "belongs to another change")
}

// TestARepeatedCommandSaysTheSame: the hint gives a relative time as a fixed one, and a retry does not ask to
// confirm a removal that is already done.
func TestARepeatedCommandSaysTheSame(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	id, _ := c.account(t, 1)
	account := strconv.FormatInt(id, 10)
	run := func(args ...string) (int, string) {
		p := start(append(args, "--writer", c.url(), "--token", operatorToken)...)
		return p.halted(), p.stdout.String() + p.stderr.String()
	}
	proxy, _ := c.loseAnswers(t, 1<<40)
	add := start("key", "add", account, "--expires", "720h", "--writer", proxy, "--token", operatorToken)
	require.True(t, add.await(func() bool { return strings.Contains(add.stderr.String(), "trying again") }), add.stderr.String())
	require.NotZero(t, add.halt())
	hint := regexp.MustCompile(`run the command again with (--idempotency-key \S+ and --expires \S+)`).FindStringSubmatch(add.stderr.String())
	require.NotNil(t, hint, add.stderr.String())
	code, said := run(append([]string{"key", "add", account}, strings.Fields(strings.Replace(hint[1], " and ", " ", 1))...)...)
	require.Zero(t, code, said)
	require.Contains(t, said, "shown this once")
	keys, err := c.client.Keys(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, keys, 2, "one is the account's first")

	for _, args := range [][]string{{"add", account, "--expires", "720h"}, {"expire", "1", "--at", "24h"}} {
		code, said = run(append([]string{"key"}, append(args, "--idempotency-key", "0123456789abcdef")...)...)
		require.Equal(t, exitMisuse, code, said)
		require.Contains(t, said, "is a date or a time, since the command must say the same again: such as "+args[2]+" 2")
	}
	for range 2 {
		code, said = run("credit", "take", account, "1", "--yes", "--idempotency-key", "fedcba9876543210")
		require.Zero(t, code, said)
	}
	plan := []string{"plan", "add", "own", "--monthly-volume", "5", "--idempotency-key", "iiiijjjjkkkkllll", "--per-minute"}
	for range 2 {
		code, said = run(append(plan, "2")...)
		require.Zero(t, code, said)
	}
	code, said = run(append(plan, "3")...)
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "the plan own is there already")
	revoke := []string{"key", "revoke", strconv.FormatInt(keys[0].ID, 10), "--idempotency-key", "aaaabbbbccccdddd"}
	code, said = run(append(revoke, "--yes")...)
	require.Zero(t, code, said)
	code, said = run(revoke...)
	require.Zero(t, code, said)

	var changes atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			changes.Add(1)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	suspend := start("account", "suspend", account, "--idempotency-key", "eeeeffffgggghhhh", "--writer", busy.URL, "--token", operatorToken)
	require.NotZero(t, suspend.halted())
	require.Zero(t, changes.Load(), "who could not be asked did not agree")
}

// TestAWriterThatIsNotThereIsToldAtOnce: nothing was sent, so nothing is uncertain.
func TestAWriterThatIsNotThereIsToldAtOnce(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	add := start("credit", "add", "1", "100", "--writer", server.URL, "--token", operatorToken)
	require.NotZero(t, add.halted())
	require.NotContains(t, add.stderr.String(), "trying again")
	require.NotContains(t, add.stderr.String(), writer.ErrUncertain.Error())
	require.Contains(t, add.stderr.String(), "is a writer (or regedge dev) running")
}

// halted waits for the end of a command and returns its exit code.
func (p *program) halted() int {
	code := <-p.ended
	p.ended <- code
	return code
}
