package writer

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// TestARetiredNodeGetsNoMoreReadTokens: whoever has its machine could read the databases with them for another month.
func TestARetiredNodeGetsNoMoreReadTokens(t *testing.T) {
	w, client, _ := runForRoles(t)
	tokens := map[string]string{"access": "made-up"}
	edges := map[string]*Client{}
	for _, name := range []string{"east", "west"} {
		node, err := client.AddNode(t.Context(), name)
		require.NoError(t, err)
		require.NoError(t, client.PassReadTokens(t.Context(), name, tokens))
		edges[name] = clientOf(w, node.Token)
	}
	given := func(name string) map[string]string {
		answer, err := edges[name].Report(t.Context(), Report{})
		require.NoError(t, err)
		return answer.ReadTokens
	}
	_, err := client.RetireNode(t.Context(), "east", true)
	require.NoError(t, err)
	require.Equal(t, tokens, given("east"), "it stays in service")
	_, err = client.RetireNode(t.Context(), "east", false)
	require.NoError(t, err)
	require.Empty(t, given("east"))
	require.NotContains(t, w.reports.tokens, "east")
	require.Equal(t, tokens, given("west"))
	require.ErrorIs(t, client.PassReadTokens(t.Context(), "east", tokens), ErrRetired)
	require.ErrorIs(t, client.PassReadTokens(t.Context(), "north", tokens), ErrNotFound)
	require.Empty(t, given("east"))

	// The outcome of a retirement may be unknown: then the ledger says who is retired.
	_, err = w.config.Ledger.Exec(`UPDATE node SET retired = 1 WHERE name = 'west'`)
	require.NoError(t, err)
	require.NoError(t, w.readTokens(t.Context()))
	require.Empty(t, given("west"))
}

// TestTheClockOfARetiredNodeDoesNotCount: nobody sets it any more, and its machine may be in other hands.
func TestTheClockOfARetiredNodeDoesNotCount(t *testing.T) {
	w, client, clock := runForRoles(t)
	node, err := client.AddNode(t.Context(), "east")
	require.NoError(t, err)
	hello := func() {
		m := syncproto.Message{Number: 1, Hello: &syncproto.Hello{Boot: 1, NowMillis: clock.now().Add(-time.Hour).UnixMilli()}}
		require.Equal(t, http.StatusOK, syncAs(w, node.Token, m).Code)
	}
	hello()
	require.Contains(t, w.clocks.wrong(), "1h0m0s ahead")
	_, err = client.RetireNode(t.Context(), "east", false)
	require.NoError(t, err)
	require.Empty(t, w.clocks.wrong(), "what it said before")
	hello()
	require.Empty(t, w.clocks.wrong(), "what it says afterwards")
}

// TestARetiredNodeLogsNoRequests: whoever has its machine could fill owners' logs with made-up ones for ever. So could one that is
// fenced, until it has a new token.
func TestARetiredNodeLogsNoRequests(t *testing.T) {
	w, client, clock := runForRoles(t)
	_, key := keyFor(t, client)
	var want []string
	for n, name := range []string{"retired", "fenced", "live"} {
		node, err := client.AddNode(t.Context(), name)
		require.NoError(t, err)
		switch name {
		case "retired":
			_, err := client.RetireNode(t.Context(), name, false)
			require.NoError(t, err)
		case "fenced":
			for range fenceAfter {
				w.offenders.note(name, ErrMalformed)
			}
		default:
			want = append(want, requestID(clock.now(), n))
		}
		served := []Served{{ID: requestID(clock.now(), n), Key: key.ID, Endpoint: "llps", Status: 200}}
		require.NoError(t, clientOf(w, node.Token).SendRequests(t.Context(), served))
	}
	require.NoError(t, w.requests.tick(t.Context()))
	p, err := client.RequestPage(t.Context(), RequestQuery{Key: key.ID}, ListQuery{})
	require.NoError(t, err)
	require.Equal(t, want, ids(p))
}

// TestReadTokensThatArePassedOnAgain reach the edge, although the writer that took them first has ended meanwhile.
func TestReadTokensThatArePassedOnAgain(t *testing.T) {
	w, client, _ := runForRoles(t)
	node, err := client.AddNode(t.Context(), "east")
	require.NoError(t, err)
	tokens := map[string]string{"access": "made-up"}
	for range 2 {
		w.reports.dropTokens("east") // as by a start
		require.NoError(t, client.PassReadTokens(WithIdempotencyKey(t.Context(), "a-call-of-two-attempts"), "east", tokens))
		answer, err := clientOf(w, node.Token).Report(t.Context(), Report{})
		require.NoError(t, err)
		require.Equal(t, tokens, answer.ReadTokens)
	}
	newer := map[string]string{"access": "newer"}
	require.NoError(t, client.PassReadTokens(t.Context(), "east", newer))
	require.NoError(t, client.PassReadTokens(WithIdempotencyKey(t.Context(), "a-call-of-two-attempts"), "east", tokens))
	answer, err := clientOf(w, node.Token).Report(t.Context(), Report{})
	require.NoError(t, err)
	require.Equal(t, newer, answer.ReadTokens, "a call that is repeated late takes nothing back")
}
