package writer

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestAClientAsksForWhatItIsTold: a name can't lead to another path, and an address may end in a slash.
func TestAClientAsksForWhatItIsTold(t *testing.T) {
	var asked string
	see := func(r *http.Request) (*http.Response, error) {
		asked = r.Method + " " + r.URL.RequestURI()
		return answers(200, `{}`)(r)
	}
	s := scripted{see, see, see, see, see, see, see, see}
	client := NewClient("http://writer/", "token", &http.Client{Transport: &s})
	for _, c := range []struct {
		ask  func() error
		want string
	}{
		{func() error { _, err := client.RetireNode(t.Context(), "a/../b", false); return err }, "POST /v1/nodes/a%2F..%2Fb/retire"},
		{func() error { _, err := client.NewNodeToken(t.Context(), "a/b"); return err }, "POST /v1/nodes/a%2Fb/token"},
		{func() error { _, err := client.EndToken(t.Context(), "a?b"); return err }, "DELETE /v1/tokens/a%3Fb"},
		{func() error { _, err := client.CreditUnresolved(t.Context(), "a/b"); return err }, "POST /v1/unresolved/a%2Fb/credit"},
		{func() error { _, err := client.SetPlan(t.Context(), Plan{ID: "a?b"}); return err }, "PUT /v1/plans/a%3Fb"},
		{func() error { _, err := client.ChangePlan(t.Context(), "a?b", PlanChange{}); return err }, "PATCH /v1/plans/a%3Fb"},
		{func() error { return client.PassReadTokens(t.Context(), "a/b", nil) }, "PUT /v1/nodes/a%2Fb/read-tokens"},
		{func() error { _, err := client.KeyPage(t.Context(), 7, ListQuery{Search: "a&b", Limit: 2}); return err }, "GET /v1/accounts/7/keys?limit=2&search=a%26b"},
	} {
		require.NoError(t, c.ask())
		require.Equal(t, c.want, asked)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, "?account=7&from=2026-01-01T00%3A00%3A00Z&to=2026-01-01T01%3A00%3A00Z", UsageQuery{Account: 7, From: from, To: from.Add(time.Hour)}.encode())
	require.Equal(t, 10*time.Second, NewClient("http://writer", "token", nil).http.Timeout, "a writer that hangs holds up nobody for ever")
	require.Less(t, changeLimit, 10*time.Second, "its own answer says more than a client that waits no longer")
}

// TestAnIdempotencyKeyIsOfOneOperator: another one would get the answer, and with it a secret.
func TestAnIdempotencyKeyIsOfOneOperator(t *testing.T) {
	w, first, _ := runForRoles(t)
	a, err := first.AddToken(t.Context(), "a", RoleAll, time.Hour)
	require.NoError(t, err)
	ab, err := first.AddToken(t.Context(), "ab", RoleAll, time.Hour)
	require.NoError(t, err)
	add := func(token string, keys ...string) (status int, replayed string) {
		r := httptest.NewRequest(http.MethodPost, "/v1/nodes", strings.NewReader(`{"name":"node-`+token[len(token)-8:]+`"}`))
		r.Header.Set("Authorization", "Bearer "+token)
		for _, key := range keys {
			r.Header.Add(IdempotencyHeader, key)
		}
		answer := httptest.NewRecorder()
		w.Handler().ServeHTTP(answer, r)
		return answer.Code, answer.Header().Get(ReplayedHeader)
	}
	const key = "the-same-key-of-two"
	status, _ := add(a.Token, "b"+key)
	require.Equal(t, http.StatusOK, status)
	status, replayed := add(ab.Token, key)
	require.Equal(t, http.StatusOK, status, "it is no other change under the first one's key")
	require.Empty(t, replayed)
	status, _ = add(a.Token, key+"-1", key+"-2")
	require.Equal(t, http.StatusBadRequest, status, "two keys name no change")
}

// TestWordsOfIndianScriptsAreNames: some need joiners.
func TestWordsOfIndianScriptsAreNames(t *testing.T) {
	for _, name := range []string{"க்\u200cஷ", "क्\u200dष"} {
		require.True(t, strings.ContainsAny(name, "\u200c\u200d"))
		require.True(t, Printable(name), name)
	}
}

// TestAllKeysOfAnAccountAreListed, over several pages.
func TestAllKeysOfAnAccountAreListed(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, _ := keyFor(t, client)
	_, err := w.config.Ledger.Exec(`INSERT INTO api_key (account, name, hash, shown, created_at, revoked_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT ?, '', CAST('made up ' || i AS BLOB), 'abcd', 0, 0 FROM n`, maxPage, account)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	keys, err := client.Keys(ctx, account)
	require.NoError(t, err)
	require.Len(t, keys, maxPage+1)
}

// TestACallerInTheProcessLeavesWhenItsTimeIsOver, as one with a network does.
func TestACallerInTheProcessLeavesWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) })
		client := NewClient("http://writer", "token", &http.Client{Transport: InProcess(hangs)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := client.Plans(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		time.Sleep(time.Hour)
	})
}

// TestAPanicEndsACallAndNotTheProcess: the dashboard calls so what edges sync with.
func TestAPanicEndsACallAndNotTheProcess(t *testing.T) {
	broken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })
	client := NewClient("http://writer", "token", &http.Client{Transport: InProcess(broken)})
	_, err := client.Plans(t.Context())
	require.ErrorContains(t, err, "panic: broken\n")
	_, err = client.AddNode(t.Context(), "one")
	require.ErrorIs(t, err, ErrUncertain)
}

// TestTheSuccessOfAnotherServiceIsNone: what says yes to everything has added no credits.
func TestTheSuccessOfAnotherServiceIsNone(t *testing.T) {
	for _, content := range []string{"<html>Please sign in</html>", "{}", ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }))
		client := NewClient(server.URL, "token", nil)
		_, err := client.ChangeCredits(t.Context(), 1, CreditChange{Amount: 5})
		require.ErrorIs(t, err, ErrStranger, content)
		require.ErrorIs(t, err, ErrUncertain, "it may have passed the call on")
		_, err = client.Accounts(t.Context())
		require.ErrorIs(t, err, ErrStranger, content)
		server.Close()
	}
	s := scripted{answers(http.StatusOK, "<html>")}
	_, err := NewClient("http://writer", "token", &http.Client{Transport: &s}).Health(t.Context())
	require.ErrorIs(t, err, ErrStranger, "a service that numbers its answers, too")
}

// TestAnAnswerThatBreaksOffLeavesAChangeUncertain, and one beyond all bounds: the writer may have made it.
func TestAnAnswerThatBreaksOffLeavesAChangeUncertain(t *testing.T) {
	for name, rest := range map[string]io.Reader{
		"broken off": io.MultiReader(strings.NewReader(`{"id"`), iotest.ErrReader(io.ErrUnexpectedEOF)),
		"too long":   strings.NewReader(strings.Repeat(" ", 100)),
	} {
		s := scripted{func(r *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(r.Context()).WroteHeaders()
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{RequestIDHeader: {"one"}}, Body: io.NopCloser(rest), Request: r}, nil
		}}
		client := NewClient("http://writer", "token", &http.Client{Transport: &s})
		client.most = 50
		_, err := client.ChangeCredits(t.Context(), 1, CreditChange{Amount: 5})
		require.ErrorIs(t, err, ErrUncertain, name)
	}
}

// TestANameServerThatHangsIsNamed: a deadline alone says as little as that a writer
// hangs, which was never asked.
func TestANameServerThatHangsIsNamed(t *testing.T) {
	testkit.NameServerHangs(t)
	client := NewClient("http://centre.example.org:8081", "token", &http.Client{Timeout: time.Minute, Transport: DialWithin(100 * time.Millisecond)})
	_, err := client.Accounts(t.Context())
	var name *net.DNSError
	require.ErrorAs(t, err, &name)
	require.Equal(t, "centre.example.org", name.Name)

	ordinary := NewClient("http://writer", "token", nil).http
	require.Same(t, operatorDial, ordinary.Transport)
	require.Greater(t, ordinary.Timeout, 8*time.Second)
}

// TestAConnectionThatIsLostIsGivenUp: before the writer may be a proxy with HTTP/2.
func TestAConnectionThatIsLostIsGivenUp(t *testing.T) {
	testkit.RequireLostIsGivenUp(t, DialWithin(time.Minute))
}

// TestANodeReadsShortAnswers: an endless one must not cost an edge its memory. Operators may read long ones.
func TestANodeReadsShortAnswers(t *testing.T) {
	for length, long := range map[int]bool{maxNodeAnswer: false, maxNodeAnswer + 1: true, 64 << 20: true} {
		read := &counted{Reader: io.LimitReader(spaces{}, int64(length)-int64(len(`{}`)))}
		endless := func(r *http.Request) (*http.Response, error) {
			response, err := answers(http.StatusOK, "")(r)
			response.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{}`), read))
			return response, err
		}
		s := scripted{endless}
		_, err := NewClient("http://writer", "token", &http.Client{Transport: &s}).ForNode().Report(t.Context(), Report{})
		if !long {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrStranger)
		require.ErrorIs(t, err, ErrTooLong)
		require.NotContains(t, err.Error(), ErrStranger.Error())
		require.ErrorContains(t, err, "more than")
		require.Less(t, read.bytes, 2*maxNodeAnswer)
	}
	s := scripted{answers(http.StatusOK, `[]`+strings.Repeat(" ", maxNodeAnswer))}
	_, err := NewClient("http://writer", "token", &http.Client{Transport: &s}).Reports(t.Context())
	require.NoError(t, err)
}

// TestEveryAnswerIsClosed, whatever it is: each that is not keeps a connection.
func TestEveryAnswerIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		length int
	}{
		"of a writer":           {http.StatusOK, http.Header{RequestIDHeader: {"R"}}, 2},
		"a refusal":             {http.StatusNotFound, http.Header{RequestIDHeader: {"R"}}, 2},
		"too long":              {http.StatusOK, http.Header{RequestIDHeader: {"R"}}, 2 * maxNodeAnswer},
		"of another service":    {http.StatusOK, http.Header{}, 2},
		"a redirect":            {http.StatusTemporaryRedirect, http.Header{"Location": {"http://other"}}, 2},
		"an error of a proxy":   {http.StatusBadGateway, http.Header{}, 2},
		"a redirect to nowhere": {http.StatusTemporaryRedirect, http.Header{}, 2},
	} {
		body := &closing{Reader: io.LimitReader(spaces{}, int64(c.length))}
		s := scripted{func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Header: c.header, Body: body, Request: r}, nil
		}}
		_, err := NewClient("http://writer", "token", &http.Client{Transport: &s}).ForNode().Report(t.Context(), Report{})
		require.Error(t, err, name)
		require.True(t, body.closed, name)
	}
}

// closing notes that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// spaces are without an end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

type counted struct {
	io.Reader
	bytes int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += n
	return n, err
}

// TestNoRedirectIsFollowed: the token is for the writer alone.
func TestNoRedirectIsFollowed(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	_, err := NewClient(server.URL, "token", nil).ChangeCredits(t.Context(), 1, CreditChange{Amount: 5})
	require.ErrorIs(t, err, ErrStranger)
	require.NotErrorIs(t, err, ErrUncertain)
	require.ErrorContains(t, err, "it redirects to "+other.URL)
	require.Zero(t, asked.Load())
}
