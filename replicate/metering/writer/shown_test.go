package writer

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
)

// TestAFailureOfTheWriterNamesItsRequest, by which its log has the cause; what a client did wrong says so
// by itself.
func TestAFailureOfTheWriterNamesItsRequest(t *testing.T) {
	said := func(status int, code string) string {
		content, err := json.Marshal(problem{Status: status, Code: code, Detail: "the detail", RequestID: "R7"})
		require.NoError(t, err)
		return readProblem(content).Error()
	}
	require.Equal(t, "the detail (request R7)", said(500, "internal"))
	require.Equal(t, "the detail", said(409, "taken"))
}

// TestAParameterThatACallLacksIsRefusedWithThoseItHas.
func TestAParameterThatACallLacksIsRefusedWithThoseItHas(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/v1/any?acount=1", nil)
	require.ErrorContains(t, checkQuery(r, nil), `"acount"; this call has none`)
	require.ErrorContains(t, checkQuery(r, []string{"account", "limit"}), `"acount", but account, limit`)
	require.NoError(t, checkQuery(r, []string{"acount"}))
	twice := httptest.NewRequest(http.MethodGet, "/v1/any?a=1&a=2", nil)
	require.ErrorContains(t, checkQuery(twice, []string{"a"}), "given twice")
}

// TestTheLagOfAReplicaIsShown with what it reads in place of its file.
func TestTheLagOfAReplicaIsShown(t *testing.T) {
	r := Report{Replicas: []Replica{
		{Database: "a", AgeMillis: -1}, {Database: "b"}, {Database: "c", AgeMillis: 1540, Fallback: true},
	}}
	for database, lag := range map[string]string{"a": "unknown", "b": "0s", "c": "1.5s (endpoint)", "d": ""} {
		require.Equal(t, lag, r.Lag(database))
	}
}

func TestAFormProposesThePlanThatIsTaken(t *testing.T) {
	require.Equal(t, DefaultPlan, PlanByDefault([]Plan{{ID: "scale", APIAccess: true}, {ID: DefaultPlan}}))
	require.Equal(t, "scale", PlanByDefault([]Plan{{ID: "free"}, {ID: "scale", APIAccess: true}, {ID: "more", APIAccess: true}}))
	require.Empty(t, PlanByDefault([]Plan{{ID: "free"}}))
}

// TestANodeReportsAsItself, at the writer's time, whatever it says.
func TestANodeReportsAsItself(t *testing.T) {
	w, client, clock := runForRoles(t)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	_, err = clientOf(w, node.Token).Report(t.Context(), Report{Node: "two", At: time.Unix(1, 0), Version: "v"})
	require.NoError(t, err)
	list, err := client.Reports(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "one", list[0].Node)
	require.True(t, clock.now().Equal(list[0].At), list[0].At)
}

// TestReportsAreListedByNode, not by chance.
func TestReportsAreListedByNode(t *testing.T) {
	w, client, _ := runForRoles(t)
	for _, name := range []string{"e", "b", "d", "a", "c"} {
		node, err := client.AddNode(t.Context(), name)
		require.NoError(t, err)
		_, err = clientOf(w, node.Token).Report(t.Context(), Report{})
		require.NoError(t, err)
	}
	list, err := client.Reports(t.Context())
	require.NoError(t, err)
	var names []string
	for _, report := range list {
		names = append(names, report.Node)
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, names)
}

// TestActsAndInvitationsAreShownWithTheirTimes.
func TestActsAndInvitationsAreShownWithTheirTimes(t *testing.T) {
	_, client, clock := runForRoles(t)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	invitation, err := client.Invite(t.Context(), "a@example.com", a.ID)
	require.NoError(t, err)
	require.WithinDuration(t, clock.now().Add(invitationLife), invitation.Expires, time.Millisecond)
	acts, err := client.AuditPage(t.Context(), 0, ListQuery{})
	require.NoError(t, err)
	require.NotEmpty(t, acts.Data)
	for _, act := range acts.Data {
		require.WithinDuration(t, clock.now(), act.At, time.Millisecond)
	}
}

// TestAChangeWithoutAnActIsNotNoted, and made.
func TestAChangeWithoutAnActIsNotNoted(t *testing.T) {
	made := false
	change := audited(t.Context(), func(context.Context, *sql.Tx, int64, *ledger.Ledger) error {
		made = true
		return nil
	})
	require.NoError(t, change(t.Context(), nil, 0, nil))
	require.True(t, made)
}
