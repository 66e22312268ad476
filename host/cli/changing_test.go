package cli

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// loseAnswers returns the address of a proxy to the writer that passes every request on, and cuts the
// first answers off.
func (c *centre) loseAnswers(t *testing.T, first int64) string {
	t.Helper()
	to, err := url.Parse(c.url())
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	var answers atomic.Int64
	proxy.ModifyResponse = func(*http.Response) error {
		if answers.Add(1) <= first {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// TestAChangeIsRepeatedUntilItIsAnswered loses the first answers to a purchase, which was booked.
func TestAChangeIsRepeatedUntilItIsAnswered(t *testing.T) {
	c := startCentre(t)
	id, _ := c.account(t, 1)
	add := start("credit", "add", "1", "100", "--writer", c.loseAnswers(t, 2), "--token", operatorToken)
	require.Zero(t, add.halted(), add.stderr.String())
	require.Equal(t, 2, strings.Count(add.stderr.String(), "trying again"), add.stderr.String())
	a, err := c.client.Account(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, 101, a.Bought)
}

// TestAnUncertainChangeIsToldAsSuch interrupts a command whose answers are all lost. It names the
// command that shows the outcome, and the same change by its name is made once.
func TestAnUncertainChangeIsToldAsSuch(t *testing.T) {
	c := startCentre(t)
	id, _ := c.account(t, 1)
	add := start("credit", "add", "1", "100", "--writer", c.loseAnswers(t, 1<<40), "--token", operatorToken)
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
