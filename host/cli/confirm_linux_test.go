package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// TestWhatTakesSomethingAwayIsAskedOnceAtATerminal types an answer to each question, and looks at the
// writer for what was done.
func TestWhatTakesSomethingAwayIsAskedOnceAtATerminal(t *testing.T) {
	c := startCentre(t)
	id, _ := c.account(t, 10)
	keys, err := c.client.Keys(t.Context(), id)
	require.NoError(t, err)
	_, err = c.client.AddNode(t.Context(), "pune")
	require.NoError(t, err)
	_, err = c.client.AddToken(t.Context(), "ci", writer.RoleRead, time.Hour)
	require.NoError(t, err)
	account := strconv.FormatInt(id, 10)
	for _, change := range []struct {
		name, says string
		args       []string
		done       func() bool
	}{
		{"key revoke", "of account " + account + " (Acme) for ever? Calls with it get 401",
			[]string{"key", "revoke", strconv.FormatInt(keys[0].ID, 10)}, func() bool {
				k, err := c.client.Key(t.Context(), keys[0].ID)
				require.NoError(t, err)
				return k.Revoked != nil
			}},
		{"account suspend", "its 10 credits stay", []string{"account", "suspend", account}, func() bool {
			a, err := c.client.Account(t.Context(), id)
			require.NoError(t, err)
			return a.Suspended
		}},
		{"credit take", "Take 4 credits from account " + account + " (Acme)? It has 10, and keeps 6.",
			[]string{"credit", "take", account, "4"}, func() bool {
				a, err := c.client.Account(t.Context(), id)
				require.NoError(t, err)
				return a.Balance == 6
			}},
		{"trust operator end", "End the token ci (read) for ever? Who uses it gets 401", []string{"trust", "operator", "end", "ci"}, func() bool {
			tokens, err := c.client.Tokens(t.Context())
			require.NoError(t, err)
			return tokens[0].Ended
		}},
		{"node retire", "compensates the 0 credits that it holds", []string{"node", "retire", "pune"}, func() bool {
			nodes, err := c.client.Nodes(t.Context())
			require.NoError(t, err)
			return nodes[0].Retired
		}},
	} {
		t.Run(change.name, func(t *testing.T) {
			args := append(change.args, "--writer", c.url(), "--token", operatorToken)
			for _, typed := range []string{"no\n", "\n"} {
				code, screen := atTerminal(t, typed, args...)
				require.Equal(t, exitFailure, code, screen)
				require.Contains(t, screen, change.says)
				require.Contains(t, screen, "nothing was changed")
				require.False(t, change.done())
			}
			code, screen := atTerminal(t, "yes\n", args...)
			require.Equal(t, exitOK, code, screen)
			require.Contains(t, screen, "Type yes:")
			require.True(t, change.done())
		})
	}
}

// TestATokenThatANodeUsesIsReplacedOnlyIfThatIsMeant: without a terminal scripts did so before there was a question.
func TestATokenThatANodeUsesIsReplacedOnlyIfThatIsMeant(t *testing.T) {
	c := startCentre(t)
	c.edge(t, "agra")
	args := []string{"node", "token", "agra", "--writer", c.url(), "--token", operatorToken}
	const made = "token is shown this once"
	code, screen := atTerminal(t, "no\n", args...)
	require.Equal(t, exitFailure, code, screen)
	require.Contains(t, screen, "Replace the token of node agra? It is live")
	require.NotContains(t, screen, made)
	for _, more := range []string{"", "--yes"} {
		code, screen = atTerminal(t, "yes\n", strings.Fields(strings.Join(args, " ")+" "+more)...)
		require.Equal(t, exitOK, code, screen)
		require.Contains(t, screen, made)
		require.Equal(t, more == "", strings.Contains(screen, "Type yes:"))
	}
	p := start(args...)
	require.Equal(t, exitOK, endOf(t, p), p.stderr.String())
	require.Contains(t, p.stdout.String(), made)
}

// TestARotationWithinAnotherIsAskedAbout, since it ends the secret that the first one left valid. Without a terminal it is
// made, as before there was a question.
func TestARotationWithinAnotherIsAskedAbout(t *testing.T) {
	c := startCentre(t)
	id, _ := c.account(t, 1)
	keys, err := c.client.Keys(t.Context(), id)
	require.NoError(t, err)
	rotate := []string{"key", "rotate", strconv.FormatInt(keys[0].ID, 10), "--writer", c.url(), "--token", operatorToken}
	const made, asked = "The key is shown this once", "Type yes:"
	old := func() string {
		k, err := c.client.Key(t.Context(), keys[0].ID)
		require.NoError(t, err)
		return k.OldShown
	}

	code, screen := atTerminal(t, "", rotate...)
	require.Equal(t, exitOK, code, screen)
	require.NotContains(t, screen, asked, "the first one takes nothing away")
	first := old()
	require.Equal(t, keys[0].Shown, first)

	code, screen = atTerminal(t, "no\n", rotate...)
	require.Equal(t, exitFailure, code, screen)
	require.Contains(t, screen, "The secret before the last rotation, reg_live_"+first+"…, would work until 20")
	require.Contains(t, screen, "nothing was changed")
	require.Equal(t, first, old())

	for _, how := range [][]string{{"yes\n"}, {"", "--yes"}} {
		before := old()
		code, screen = atTerminal(t, how[0], append(rotate, how[1:]...)...)
		require.Equal(t, exitOK, code, screen)
		require.Contains(t, screen, made)
		require.NotEqual(t, before, old())
	}
	p := start(rotate...)
	require.Equal(t, exitOK, endOf(t, p), p.stderr.String())
	require.Contains(t, p.stdout.String(), made)
}

// TestKeysAreReplacedOnlyIfThatIsMeant: every token and certificate ends with them.
func TestKeysAreReplacedOnlyIfThatIsMeant(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	args := []string{"trust", "init", "--trust", dir}
	run := func(args ...string) (code int, stdout, stderr string) {
		p := start(args...)
		code = endOf(t, p)
		return code, p.stdout.String(), p.stderr.String()
	}
	code, _, stderr := run(args...)
	require.Equal(t, exitOK, code, stderr)
	code, _, stderr = run("trust", "machine", "edge-pune", "--trust", dir)
	require.Equal(t, exitOK, code, stderr)
	authority := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
		require.NoError(t, err)
		return string(text)
	}
	before := authority()

	code, _, stderr = run(args...)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "no terminal to ask at: Replace the authority and the 4 key pairs in "+dir)
	require.Contains(t, stderr, "1 machine certificate and all tokens")
	require.Contains(t, stderr, "--yes")
	code, screen := atTerminal(t, "no\n", args...)
	require.Equal(t, exitFailure, code, screen)
	require.Contains(t, screen, "nothing was changed")
	require.Equal(t, before, authority())

	code, screen = atTerminal(t, "yes\n", args...)
	require.Equal(t, exitOK, code, screen)
	second := authority()
	require.NotEqual(t, before, second)
	kept, err := filepath.Glob(dir + ".replaced-*")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Contains(t, screen, "are in "+kept[0])
	require.NoError(t, os.Rename(kept[0], dir+".first")) // the next one may be of the same second
	code, stdout, stderr := run(append(args, "--yes")...)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "Replaced")
	require.NotEqual(t, second, authority())
}
