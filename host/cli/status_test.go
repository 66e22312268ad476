package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
