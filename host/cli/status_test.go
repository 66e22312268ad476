package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/doctor"
	"regedge/host/hint"
	"regedge/host/sqlite"
	"regedge/internal/testkit"
	"regedge/replicate/metering/meter"
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
	require.NotContains(t, out.String(), "No release has been pushed", "of a registry that nobody has seen")
}

// TestAWatchLeavesNoStreamAtTheRegistry: each round would leave one. That it has no release is said.
func TestAWatchLeavesNoStreamAtTheRegistry(t *testing.T) {
	c := startCentre(t)
	closed := make(chan struct{}, 8)
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte(`"type":"close"`)) {
			closed <- struct{}{}
		}
		io.WriteString(w, `{"baton":"x","results":[{"type":"ok","response":{"type":"execute","result":{"cols":[{"name":"n"}],"rows":[[{"type":"integer","value":"0"}]]}}}]}`)
	}))
	defer registry.Close()
	var out testkit.Log
	m := &Main{Stdout: &out, Stderr: t.Output(), Environ: func() []string { return nil }, Now: time.Now}
	require.Equal(t, exitOK, m.Run(t.Context(), []string{"status", "--writer", c.url(), "--token", operatorToken, "--registry", registry.URL}))
	require.Contains(t, out.String(), "No release has been pushed to the registry yet.")
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("it was not closed")
	}
}

// TestAnInterruptedWatchEndsInSilence, whatever it was waiting for: what is cut off has not failed.
func TestAnInterruptedWatchEndsInSilence(t *testing.T) {
	for _, silent := range []string{"/v1/nodes", "/readyz"} {
		asked := make(chan struct{}, 8)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(writer.RequestIDHeader, "R")
			switch r.URL.Path {
			case silent:
				asked <- struct{}{}
				<-r.Context().Done()
			case writer.ReportPath:
				io.WriteString(w, `[]`)
			default:
				io.WriteString(w, `{"data":[{"name":"pune","epoch":1,"live":true}]}`)
			}
		}))
		defer server.Close()
		p := start("status", "--watch", "--explain", "--writer", server.URL, "--token", "a token")
		<-asked
		p.stop()
		require.Equal(t, exitOK, <-p.ended, silent)
		require.Empty(t, p.stdout.String()+p.stderr.String(), silent)
	}
}

// TestAnOperatorsWrongClockMakesNoReportOldOrNew: what is a minute old by the clock of an operator's machine may just
// have arrived, and what seems new may be old.
func TestAnOperatorsWrongClockMakesNoReportOldOrNew(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	reported := at
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		w.Header().Set("Date", at.Format(http.TimeFormat))
		if r.URL.Path == writer.ReportPath {
			fmt.Fprintf(w, `[{"node":"pune","at":%q,"release":"r1"}]`, reported.Format(time.RFC3339))
			return
		}
		io.WriteString(w, `{"data":[{"name":"pune","epoch":1,"live":true}]}`)
	}))
	defer server.Close()
	for _, off := range []time.Duration{time.Minute, -time.Hour} {
		for age, want := range map[time.Duration]int{0: exitOK, time.Minute: exitFailure} {
			reported = at.Add(-age)
			var out testkit.Log
			m := &Main{Stdout: &out, Stderr: &out, Environ: func() []string { return nil }, Now: func() time.Time { return at.Add(off) }}
			code := m.Run(t.Context(), []string{"status", "--explain", "--writer", server.URL, "--token", "a token"})
			require.Equal(t, want, code, out.String())
			require.Contains(t, out.String(), "reported "+age.String()+" ago")
		}
	}
}

// TestWhatCanBeTakenIsSaid: credits that an earlier change still has to take cannot be taken again.
func TestWhatCanBeTakenIsSaid(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
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

// TestAnExpiredKeyIsNoActiveOneThatGoes: the account has as many as before, and none of them fewer than none.
func TestAnExpiredKeyIsNoActiveOneThatGoes(t *testing.T) {
	expired := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		if strings.HasPrefix(r.URL.Path, "/v1/accounts/") {
			io.WriteString(w, `{"id":1,"name":"Acme","keys":1}`)
			return
		}
		fmt.Fprintf(w, `{"id":3,"account":1,"name":"job","expired":%t}`, expired)
	}))
	defer server.Close()
	client := writer.NewClient(server.URL, "a token", nil)
	said, err := revokeQuestion(3)(t.Context(), client)
	require.NoError(t, err)
	require.Equal(t, "Revoke key 3 (job) of account 1 (Acme) for ever? It has expired; the account keeps 1 active key.", said)
	expired = false
	said, err = revokeQuestion(3)(t.Context(), client)
	require.NoError(t, err)
	require.Contains(t, said, "get 401 within seconds; the account keeps 0 active keys.")
}

// TestNobodyIsAskedWhetherToTakeNothing: --at-most takes what there is, and there is nothing.
func TestNobodyIsAskedWhetherToTakeNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		io.WriteString(w, `{"id":1,"name":"Acme","balance":4,"deducting":4}`)
	}))
	defer server.Close()
	said, err := takeQuestion(1, 7, true)(t.Context(), writer.NewClient(server.URL, "a token", nil))
	require.NoError(t, err)
	require.Empty(t, said)
}

// TestUsageIsSummedBeforeTheDayOfTo, as it is listed: the writer's days include the last.
func TestUsageIsSummedBeforeTheDayOfTo(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("from") + " to " + r.URL.Query().Get("to")
		w.Header().Set(writer.RequestIDHeader, "R")
		io.WriteString(w, `{"data":[{"day":"2026-02-28","key":7,"endpoint":"companies","found":3,"not_found":2,"failed":1}]}`)
	}))
	defer server.Close()
	var out testkit.Log
	m := &Main{Stdout: &out, Stderr: &out, Environ: func() []string { return nil }, Now: time.Now}
	code := m.Run(t.Context(), []string{"usage", "--writer", server.URL, "--token", "a token", "--account", "1", "--by", "day", "--from", "2026-02-27", "--to", "2026-03-01"})
	require.Equal(t, exitOK, code, out.String())
	require.Equal(t, "2026-02-27 to 2026-02-28", asked)
	require.Regexp(t, `(?m)^2026-02-28 +3 +2 +1$`, out.String())
	code = m.Run(t.Context(), []string{"usage", "--writer", server.URL, "--token", "a token", "--account", "1", "--by", "endpoint,key,day", "--csv"})
	require.Equal(t, exitOK, code, out.String())
	require.Contains(t, out.String(), "endpoint,key,day,found,not_found,failed\ncompanies,7,2026-02-28,3,2,1\n")
}

// TestARetiredNodeIsNothingElse: that it was fenced before asks nobody to do something.
func TestARetiredNodeIsNothingElse(t *testing.T) {
	for want, n := range map[string]writer.Node{
		"retired": {Retired: true, Fenced: true, Live: true}, "fenced": {Fenced: true, Live: true}, "live": {Live: true}, "away": {},
	} {
		require.Equal(t, want, nodeState(n))
	}
}

// TestARevokedKeyIsNotCalledExpired, though it is that too.
func TestARevokedKeyIsNotCalledExpired(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	require.Equal(t, "revoked 2026-11-22", keyState(writer.Key{Revoked: &at, Expired: true}))
	require.Equal(t, "expired", keyState(writer.Key{Expired: true}))
}

// TestTheLongestOverlapIsAllowed, and no longer one.
func TestTheLongestOverlapIsAllowed(t *testing.T) {
	require.NoError(t, (&keyRotate{Overlap: writer.MaxOverlap}).Validate())
	require.Error(t, (&keyRotate{Overlap: writer.MaxOverlap + 1}).Validate())
}

// TestNamesAreToldFromNameServers: a name that does not exist is misspelt, one that nobody can look up may not be.
func TestNamesAreToldFromNameServers(t *testing.T) {
	missing := &net.DNSError{Name: "centre.example", IsNotFound: true}
	require.Contains(t, hint.Of(explainName(missing, missing, "--writer")), "check its spelling in --writer")
	unanswered := &net.DNSError{Name: "centre.example", IsTemporary: true}
	require.Contains(t, hint.Of(explainName(unanswered, unanswered, "--writer")), "name servers")
}

// TestWhatIsQuestionedIsWritten: the question says how much of a node is written off, and quotes
// names with control characters.
func TestWhatIsQuestionedIsWritten(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		io.WriteString(w, `{"data":[{"name":"pune","epoch":2,"leased":7,"stale":1}]}`)
	}))
	defer server.Close()
	client := writer.NewClient(server.URL, "a token", nil)
	for oldEpochs, want := range map[bool]string{true: "Write off 1 credit that node pune", false: "compensates the 7 credits"} {
		said, err := retireQuestion("pune", oldEpochs)(t.Context(), client)
		require.NoError(t, err)
		require.Contains(t, said, want)
	}
	require.Equal(t, ` ("a\x1b[2J")`, named("a\x1b[2J"))
}

// TestARetiredNodesOldEpochsCanBeWrittenOff, though it can't be retired again.
func TestARetiredNodesOldEpochsCanBeWrittenOff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		io.WriteString(w, `{"data":[{"name":"pune","retired":true,"stale":3}]}`)
	}))
	defer server.Close()
	client := writer.NewClient(server.URL, "a token", nil)
	said, err := retireQuestion("pune", true)(t.Context(), client)
	require.NoError(t, err)
	require.Contains(t, said, "Write off 3 credits that node pune")
	_, err = retireQuestion("pune", false)(t.Context(), client)
	require.ErrorIs(t, err, errGone)
}

// TestWhatIsWrongWithANodeIsSaid, and nothing else.
func TestWhatIsWrongWithANodeIsSaid(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	replica := func(age time.Duration) func(*nodeStatus) {
		return func(n *nodeStatus) {
			n.Report.Replicas = []writer.Replica{{Database: "access", AgeMillis: age.Milliseconds()}}
		}
	}
	for _, c := range []struct {
		change func(*nodeStatus)
		level  doctor.Level
		words  string
	}{
		{func(*nodeStatus) {}, doctor.OK, "it is ready, has release r2, and reported 10s ago"},
		{func(n *nodeStatus) { n.Fenced = true }, doctor.Wrong, "it is fenced"},
		{func(n *nodeStatus) { n.Epoch = 0 }, doctor.Soon, "it was never started"},
		{func(n *nodeStatus) { n.Live, n.Leased = false, 5 }, doctor.Wrong, "it is away, last seen 1m0s ago; 5 credits"},
		{func(n *nodeStatus) { n.Live, n.Seen = false, time.Time{} }, doctor.Wrong, "it is away, last seen before the writer's start; 0 credits"},
		{func(n *nodeStatus) { n.Live = false; replica(replicaOld + time.Second)(n) }, doctor.Wrong, "it is away"}, // its old report says no more
		{func(n *nodeStatus) { n.Report = nil }, doctor.Soon, "it has not reported"},
		{func(n *nodeStatus) { n.Report.Ready = "no lease" }, doctor.Wrong, "it is not ready: no lease"},
		{func(n *nodeStatus) { n.Report.At = at.Add(-reportLate - time.Second) }, doctor.Wrong, "it last reported 11s ago"},
		{func(n *nodeStatus) { n.Stale = 5 }, doctor.Soon, "5 credits are leased under its earlier epochs"},
		{func(n *nodeStatus) { n.Report.Unsettled = manyUnsettled }, doctor.OK, "it is ready"},
		{func(n *nodeStatus) { n.Report.Unsettled = manyUnsettled + 1 }, doctor.Soon, "may not have 10001 of its charges"},
		{func(n *nodeStatus) { n.Report.Release = "r1" }, doctor.Soon, "from release r1, and r2 is current"},
		{func(n *nodeStatus) { n.Report.Release = "" }, doctor.Soon, "it has no release, and r2 is current"},
		{replica(replicaLate), doctor.OK, "it is ready"},
		{replica(replicaLate + time.Second), doctor.Soon, "its access is 11s behind"},
		{replica(replicaOld), doctor.Soon, "its access is 10m0s behind"},
		{replica(replicaOld + time.Second), doctor.Wrong, "its access is 10m1s behind"},
		{replica(-time.Millisecond), doctor.Wrong, "the age of its access is unknown"},
		{func(n *nodeStatus) { n.Report.Replicas = []writer.Replica{{Database: "access", Fallback: true}} }, doctor.Soon, "it reads the endpoint of its access in place of the file"},
	} {
		n := nodeStatus{
			Node:   writer.Node{Name: "pune", Live: true, Epoch: 1, Seen: at.Add(-time.Minute)},
			Report: &writer.Report{At: at.Add(-reportLate), Release: "r2"},
		}
		c.change(&n)
		s := &status{At: at, Nodes: []nodeStatus{n}, Releases: []push.Release{{ID: "r2"}, {ID: "r1"}}}
		found := s.explain()
		last := found[len(found)-1]
		require.Equal(t, c.level, last.Level, "%+v", found)
		require.Contains(t, last.Found, c.words)
		var b strings.Builder
		require.NoError(t, s.write(&b))
		require.Equal(t, strings.Contains(c.words, "last reported"), strings.Contains(b.String(), " ago (old)"), b.String())
	}
	retired := status{At: at, Nodes: []nodeStatus{{Node: writer.Node{Retired: true}}}}
	require.Empty(t, retired.explain())
	require.Equal(t, "there is none", (&status{}).explain()[0].Found)
}

// TestAWrongClockIsExplained: regedge doctor at the node would say no more than where to look.
func TestAWrongClockIsExplained(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	n := nodeStatus{Node: writer.Node{Name: "pune", Live: true, Epoch: 1}}
	for _, wrong := range []error{meter.ErrSkew, sqlite.ErrAhead} {
		n.Report = &writer.Report{At: at, Ready: "access replica: " + wrong.Error() + ": 1h0m0s"}
		found := (&status{At: at, Nodes: []nodeStatus{n}}).explain()
		require.Equal(t, doctor.Wrong, found[0].Level)
		for _, part := range []string{"date -u", "NTP", "the writer's"} {
			require.Contains(t, found[0].Do, part)
		}
	}
	n.Report = &writer.Report{At: at, Replicas: []writer.Replica{{Database: "access", AgeMillis: -1}}}
	found := (&status{At: at, Nodes: []nodeStatus{n}}).explain()
	for _, part := range []string{"heartbeats", "date -u", "NTP"} {
		require.Contains(t, found[len(found)-1].Do, part)
	}
}

func TestColumnsHoldWhatTheirHeadsSay(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var b strings.Builder
	require.NoError(t, usageCSV(&b, []writer.UsageRow{{Account: 1, Key: 2, Endpoint: "company", Outcome: "found", Hour: at, Count: 3}}))
	require.Equal(t, "hour,account,key,endpoint,outcome,count\n2026-11-22T12:00Z,1,2,company,found,3\n", b.String())
	b.Reset()
	table := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	doubtsTable(table, []writer.Unresolved{{ID: "01M", Account: 1, Key: 2, Edge: "pune", At: at}, {Account: 1, Key: 2, Credited: true, At: at}})
	require.NoError(t, table.Flush())
	lines := strings.Split(b.String(), "\n")
	require.Equal(t, strings.Fields("REQUEST ACCOUNT KEY EDGE AT STATE"), strings.Fields(lines[0]))
	require.Equal(t, strings.Fields("01M 1 2 pune 2026-11-22T12:00:00Z open"), strings.Fields(lines[1]))
	require.Equal(t, strings.Fields("1 2 2026-11-22T12:00:00Z credited"), strings.Fields(lines[2]))
}

// TestTablesHoldWhatTheirHeadsSay: numbers of one kind stand under one another.
func TestTablesHoldWhatTheirHeadsSay(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	replicas := []writer.Replica{{Database: "access", AgeMillis: 2000}, {Database: "registry", AgeMillis: 1000}}
	s := status{
		At: at,
		Nodes: []nodeStatus{
			{Node: writer.Node{Name: "east"}, Report: &writer.Report{Replicas: replicas, At: at.Add(-reportLate)}},
			{Node: writer.Node{Name: "west"}, Report: &writer.Report{At: at.Add(-reportLate - time.Second)}},
		},
		Releases: []push.Release{{ID: "r1", Pushed: at, Companies: 1, LLPs: 2, Directors: 3, Appointments: 4, Partners: 5}},
	}
	var out strings.Builder
	require.NoError(t, s.write(&out))
	require.Regexp(t, `RELEASE +REGISTRY +ACCESS`, out.String())
	require.Regexp(t, `east .* 1s +2s `, out.String())
	require.Regexp(t, `COMPANIES +LLPS +DIRECTORS +APPOINTMENTS +PARTNERS\nr1 +2026-11-22T12:00:00Z +1 +2 +3 +4 +5\n`, out.String())
	require.Equal(t, 1, strings.Count(out.String(), "(old)"), out.String())

	table := func(write func(*tabwriter.Writer)) string {
		out.Reset()
		table := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0)
		write(table)
		require.NoError(t, table.Flush())
		return out.String()
	}
	key := writer.Key{ID: 3, Account: 7, Name: "job", Shown: "new1", OldShown: "old1", Created: at, OldEnds: &at, PerMinute: 5, MonthlyCredits: 50, Allowed: []string{"192.0.2.0/24", "2001:db8::/32"}}
	text := table(func(table *tabwriter.Writer) {
		newKeyTable(table, writer.NewKey{Key: key, Secret: "reg_live_new1secret"})
	})
	require.Regexp(t, `3 +7 +job +reg_live_new1… +2026-11-22 +active +never +5 a minute, 50 credits a month, from 192\.0\.2\.0/24 2001:db8::/32\n`, text)
	require.Contains(t, text, "\nreg_live_new1secret\n")
	require.Contains(t, text, "The one before, reg_live_old1…, is valid until 2026-11-22T12:00:00Z.")
	key.LimitedUntil, key.Expires = &at, &at
	require.Regexp(t, `active +2026-11-22T12:00:00Z +5 a minute, 50 credits a month \(spent\), from`, table(func(table *tabwriter.Writer) { keyTable(table, key) }))
	text = table(func(table *tabwriter.Writer) {
		accountTable(table, writer.Account{ID: 7, Name: "Acme", Owners: []string{"a@example.com"}, Invited: []string{"b@example.com"}, Plan: "growth", Keys: 2, Balance: 30, Spent: 4})
	})
	require.Regexp(t, `7 +Acme +a@example\.com, b@example\.com \(invited\) +growth +active +2 +30 +4\n`, text)
	text = table(func(table *tabwriter.Writer) {
		planTable(table, writer.Plan{ID: "p", APIAccess: true, PerMinute: 6, MonthlyVolume: 70, Phone: true})
	})
	require.Regexp(t, `p +yes +6 +70 +no +yes\n`, text)
}

// TestCreditsThatEdgesStillHoldAreTold, when some are taken; none of nothing are.
func TestCreditsThatEdgesStillHoldAreTold(t *testing.T) {
	deducting := 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		fmt.Fprintf(w, `{"id":1,"balance":7,"deducting":%d}`, deducting)
	}))
	defer server.Close()
	for ; deducting >= 0; deducting-- {
		var out testkit.Log
		m := &Main{Stdout: &out, Stderr: &out, Environ: func() []string { return nil }, Now: time.Now}
		code := m.Run(t.Context(), []string{"credit", "take", "1", "5", "--yes", "--writer", server.URL, "--token", "a token"})
		require.Equal(t, exitOK, code, out.String())
		require.Equal(t, deducting == 1, strings.Contains(out.String(), "1 more are taken when the edges return them."), out.String())
	}
	for _, amount := range []int64{0, -1} {
		require.Error(t, (&creditAdd{Amount: amount}).Validate())
		require.Error(t, (&creditTake{Amount: amount}).Validate())
	}
}

// TestStatusSaysWhichProgramAnEdgeRuns: which version, of which commit, with which component.
func TestStatusSaysWhichProgramAnEdgeRuns(t *testing.T) {
	report := writer.Report{Version: "1.2.0", Commit: "b1946ac92492", Component: "c3499c2729730a7f"}
	s := status{Nodes: []nodeStatus{{Node: writer.Node{Name: "edge-1"}, Report: &report}, {Node: writer.Node{Name: "edge-2"}}}}
	var out strings.Builder
	require.NoError(t, s.write(&out))
	require.Regexp(t, `VERSION +COMMIT +COMPONENT +REPORTED`, out.String())
	require.Regexp(t, `edge-1 .* 1\.2\.0 +b1946ac9 +c3499c27 `, out.String())
	require.Regexp(t, `edge-2 .* - +- +- `, out.String())
}

// TestANodeThatIsAwayIsCalledThat, whatever it reported before.
func TestANodeThatIsAwayIsCalledThat(t *testing.T) {
	report := &writer.Report{Ready: "the journal hangs"}
	for live, want := range map[bool]string{true: "not ready: the journal hangs", false: "away"} {
		n := nodeStatus{Node: writer.Node{Name: "pune", Epoch: 1, Live: live}, Report: report}
		require.Equal(t, want, n.state())
	}
}

// TestAWatchForProgramsPrintsALineEachTime, so that they can read it while it goes on.
func TestAWatchForProgramsPrintsALineEachTime(t *testing.T) {
	var out strings.Builder
	for _, watch := range []bool{true, false} {
		out.Reset()
		c := statusCommand{Watch: watch}
		c.JSON = true
		require.NoError(t, c.print(&Main{Stdout: &out}, &status{At: time.Unix(0, 0).UTC(), Nodes: []nodeStatus{}}))
		require.Equal(t, watch, strings.Count(out.String(), "\n") == 1, out.String())
		require.True(t, json.Valid([]byte(out.String())))
	}
}

// TestAHintOfTheTokenStaysWhereTheRegistryIsExplained: the registry's server was not asked.
func TestAHintOfTheTokenStaysWhereTheRegistryIsExplained(t *testing.T) {
	c := statusCommand{Registry: "http://127.0.0.1:1"}
	_, err := readToken("", filepath.Join(t.TempDir(), "missing"))
	require.Contains(t, hint.Of(c.explainRegistry(err)), "name a file that this user can read")
	require.Contains(t, hint.Of(c.explainRegistry(errors.New("refused"))), "is the registry's server running")
}

// TestAWatchSurvivesAnOutageOfTheWriter, and says that there is one; a writer that was never reached ends it.
func TestAWatchSurvivesAnOutageOfTheWriter(t *testing.T) {
	c := startCentre(t)
	to, err := url.Parse(c.url())
	require.NoError(t, err)
	var away atomic.Bool
	before := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		before.ServeHTTP(w, r)
	}))
	defer server.Close()
	args := []string{"status", "--writer", server.URL, "--token", operatorToken, "--watch", "--interval", "10ms"}
	p := start(args...)
	defer p.halt()
	pages := func() int { return strings.Count(p.stdout.String(), "Ctrl-C ends it") }
	require.True(t, p.await(func() bool { return pages() > 1 }), p.stderr.String())
	require.Empty(t, p.stderr.String())
	away.Store(true)
	require.True(t, p.await(func() bool { return strings.Contains(p.stderr.String(), "regedge: ") }))
	require.Equal(t, exitFailure, <-start(args...).ended)
	away.Store(false)
	shown := pages()
	require.True(t, p.await(func() bool { return pages() > shown+1 }), p.stderr.String())
	require.Equal(t, exitOK, p.halt())
	require.NotContains(t, p.stdout.String(), "\x1b", "a file is no screen to clear")
}

func TestOneFindingIsWrongAndSeveralAre(t *testing.T) {
	wrong, ok := doctor.Finding{Level: doctor.Wrong}, doctor.Finding{Level: doctor.OK}
	require.NoError(t, areWrong([]doctor.Finding{ok}))
	require.EqualError(t, areWrong([]doctor.Finding{ok, wrong}), "1 of 2 findings is wrong")
	require.EqualError(t, areWrong([]doctor.Finding{wrong, wrong}), "2 of 2 findings are wrong")
}
