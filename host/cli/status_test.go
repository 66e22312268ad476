package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/push"
)

// TestStatusSaysWhatIsMissingWithoutPersons of the current release.
func TestStatusSaysWhatIsMissingWithoutPersons(t *testing.T) {
	shown := func(releases ...push.Release) string {
		var b strings.Builder
		require.NoError(t, (&status{Releases: releases}).write(&b))
		return b.String()
	}
	whole := push.Release{ID: "whole", Companies: 1, LLPs: 1, Directors: 1, Appointments: 1, Partners: 1}
	require.Contains(t, shown(push.Release{ID: "bare", Companies: 1}, whole), "no directors: GET /v1/directors/{din} answers 404")
	require.NotContains(t, shown(whole, push.Release{ID: "bare", Companies: 1}), "answers 404")
	require.Contains(t, shown(push.Release{Companies: 1, LLPs: 1, Directors: 1}), "no appointments: companies have no directors, and directors no companies;\nit has no partners")
}

// TestWhatCanBeTakenIsSaid: what a change before still has to take is not there to be taken again.
func TestWhatCanBeTakenIsSaid(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"id":1,"name":"Acme","balance":10,"deducting":4}`)
	}))
	defer server.Close()
	client := writer.NewClient(server.URL, "a token", nil)
	said, err := takeQuestion(1, 6, false)(t.Context(), client)
	require.NoError(t, err)
	require.Equal(t, "Take 6 credits from account 1 (Acme)? It has 6, and keeps 0.", said)
	_, err = takeQuestion(1, 7, false)(t.Context(), client)
	require.ErrorIs(t, err, writer.ErrBeyondBalance)
	said, err = takeQuestion(1, 7, true)(t.Context(), client)
	require.NoError(t, err)
	require.Contains(t, said, "Take 6 credits")
}
