package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

const yearAhead = 365 * 24 * time.Hour

// TestAttemptsWhileTheClockWasAheadLockNobodyOut until the time of that clock has come.
func TestAttemptsWhileTheClockWasAheadLockNobodyOut(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	w.pass(yearAhead)
	for range 10 {
		w.browser().signIn("owner@example.com", "wrong words in here")
	}
	locked := func() int { return w.browser().signIn("owner@example.com", password).StatusCode }
	require.Equal(t, http.StatusTooManyRequests, locked())
	w.pass(-time.Minute)
	require.Equal(t, http.StatusTooManyRequests, locked(), "a clock that is adjusted forgives nothing")
	w.pass(time.Minute - yearAhead)
	w.browser().requireIn("owner@example.com")
}

// TestGuessesAreBoundedAgainOnceAClockThatWasAheadIsRight: those that it counted do not stand in for new ones.
func TestGuessesAreBoundedAgainOnceAClockThatWasAheadIsRight(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	guess := func() int { return w.browser().signIn("owner@example.com", "wrong words in here").StatusCode }
	w.pass(yearAhead)
	require.Equal(t, http.StatusUnprocessableEntity, guess())
	w.pass(-yearAhead)
	for range 10 {
		require.Equal(t, http.StatusUnprocessableEntity, guess())
	}
	require.Equal(t, http.StatusTooManyRequests, guess())
}

// TestASessionOfAClockThatWasAheadEnds rather than last until a week after the time of that clock.
func TestASessionOfAClockThatWasAheadEnds(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	w.pass(yearAhead)
	b := w.browser().requireIn("owner@example.com")
	w.pass(-time.Minute)
	require.Contains(t, b.get("/settings").body, "Sign out everywhere", "a clock that is adjusted ends no session")
	w.pass(time.Minute - yearAhead)
	require.NotContains(t, b.get("/settings").body, "Sign out everywhere")
	b.requireIn("owner@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM session`), "the row goes too")
}

// TestASessionThatWasUsedByAClockThatWasAheadEnds: it would not be idle until the time of that clock has come.
func TestASessionThatWasUsedByAClockThatWasAheadEnds(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	b := w.browser().requireIn("owner@example.com")
	w.pass(2 * time.Hour)
	require.Contains(t, b.get("/settings").body, "Sign out everywhere")
	w.pass(-2 * time.Hour)
	require.NotContains(t, b.get("/settings").body, "Sign out everywhere")
	w.browser().requireIn("owner@example.com")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM session`), "the row goes too")
}

// TestACodeOfAClockThatWasAheadIsAwaitedNoMore: the password would not be asked for until the time of that clock has come.
func TestACodeOfAClockThatWasAheadIsAwaitedNoMore(t *testing.T) {
	w := newWorld(t)
	w.person("owner@example.com", w.account("Acme", 0))
	app := w.browser().requireIn("owner@example.com").enrol()
	begin := func() *browser {
		b := w.browser()
		require.Contains(t, b.signIn("owner@example.com", password).body, "<h1>Enter the code</h1>")
		return b
	}
	w.pass(yearAhead)
	late := begin()
	w.pass(5*time.Minute - yearAhead)
	require.NotContains(t, late.again(app.code(0)).body, "Sign out")
	require.NotContains(t, late.get("/settings").body, "Sign out everywhere")
	adjusted := begin()
	require.Equal(t, 1, w.count(`SELECT count(*) FROM sign_in`), "the row goes too")
	w.pass(-time.Minute)
	require.Contains(t, adjusted.again(app.code(0)).body, "Sign out", "a clock that is adjusted forgets nothing")
}

// TestAnInvitationOfAClockThatWasAheadEnds rather than last until three days after the time of that clock.
func TestAnInvitationOfAClockThatWasAheadEnds(t *testing.T) {
	w := newWorld(t)
	account := w.account("Acme", 0)
	w.pass(yearAhead)
	i, err := w.client.Invite(t.Context(), "owner@example.com", account)
	require.NoError(t, err)
	opened := func() int { return w.browser().get(writer.InvitationPath + i.Token).StatusCode }
	w.pass(-time.Minute)
	require.Equal(t, http.StatusOK, opened(), "a clock that is adjusted ends no invitation")
	w.pass(time.Minute - yearAhead)
	require.Equal(t, http.StatusNotFound, opened())
	require.ErrorContains(t, w.dashboard.Accept(t.Context(), i.Token, password), "can't be used")
}
