package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
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

// TestStatusEndsThoughTheRegistryHangs, and shows the nodes.
func TestStatusEndsThoughTheRegistryHangs(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	_, err := c.client.AddNode(t.Context(), "pune")
	require.NoError(t, err)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and says nothing
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out testkit.Log
	m := &Main{Stdout: &out, Stderr: &out, Environ: func() []string { return nil }, Now: time.Now}
	code := m.Run(ctx, []string{"status", "--writer", c.url(), "--token", operatorToken, "--registry", "http://" + silent.Addr().String(), "--registry-token", "a.b.c"})
	require.NoError(t, ctx.Err(), "it ends by itself")
	require.Equal(t, exitFailure, code, out.String())
	require.Contains(t, out.String(), "pune")
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
