package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// account makes an account with credits and a key.
func (c *cluster) account(credits int64) *account {
	_, err := c.client.SetPlan(c.t.Context(), writer.Plan{ID: "unlimited", APIAccess: true, PerMinute: 1 << 30, MonthlyVolume: 1 << 40})
	require.NoError(c.t, err)
	made, err := c.client.AddAccount(c.t.Context(), "chaos", "", "unlimited")
	require.NoError(c.t, err)
	_, err = c.client.ChangeCredits(c.t.Context(), made.ID, writer.CreditChange{Amount: credits})
	require.NoError(c.t, err)
	key, err := c.client.AddKey(c.t.Context(), made.ID, "")
	require.NoError(c.t, err)
	a := &account{cluster: c, id: made.ID, key: key.Secret, bought: credits}
	for _, p := range c.edges {
		// An edge may see a new key a moment late. A refused request costs nothing.
		eventually(c.t, func() bool { return a.fetch(p.dials(), p, "/v1/companies/none") != http.StatusUnauthorized },
			func() string { return p.name + " knows the key" })
	}
	return a
}

// account counts what its clients received.
type account struct {
	cluster *cluster
	id      int64
	key     string
	bought  int64

	mu    sync.Mutex
	codes map[int]int64
	cut   int64
}

// ask requests a company from an edge and counts the outcome.
func (a *account) ask(client *http.Client, p *process) int { return a.fetch(client, p, company) }

func (a *account) fetch(client *http.Client, p *process, path string) int {
	request, err := http.NewRequest(http.MethodGet, p.url(path), nil)
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+a.key)
	// The client retries by itself when a reused connection ends without an answer: each
	// attempt may be charged.
	var sent atomic.Int64
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Add(1) },
	}))
	response, err := client.Do(request)
	status := 0
	if err == nil {
		status = response.StatusCode
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	cut := sent.Load()
	if err == nil {
		a.count(status)
		cut--
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut += cut
	return status
}

// count counts an answer that a client received.
func (a *account) count(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.codes == nil {
		a.codes = map[int]int64{}
	}
	a.codes[status]++
}

// got is how many answers 200 clients received, and how many requests were cut off.
func (a *account) got() (answered, cut int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.codes[http.StatusOK], a.cut
}

func (a *account) read() (writer.Account, error) {
	return a.cluster.client.Account(context.Background(), a.id)
}

// settles waits until every answer is spent, and checks that nothing else is.
func (a *account) settles() {
	t := a.cluster.t
	t.Helper()
	answered, cut := a.got()
	eventually(t, func() bool {
		at, err := a.read()
		return err == nil && at.Spent >= answered
	}, func() string {
		at, err := a.read()
		return fmt.Sprintf("%d answers are spent: %+v %v", answered, at, err)
	})
	at, err := a.read()
	require.NoError(t, err)
	require.LessOrEqual(t, at.Spent, answered+cut, "spent, beside %d answers and %d requests cut off", answered, cut)
	require.LessOrEqual(t, at.Spent, at.Bought+at.Compensated)
	require.Equal(t, at.Bought+at.Compensated, at.Left+at.Leased+at.Spent+at.Lost)
}
