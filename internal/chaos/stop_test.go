package chaos

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stops is 50 in make soak.
var stops = flag.Int("stops", 3, "graceful stops of an edge under load")

const (
	// pipelines is how many clients send requests without waiting for answers, so that an edge that is stopped
	// has charged some whose answers are still on their way.
	pipelines = 8
	// sentAtOnce is how many requests such a client sends in one piece.
	sentAtOnce = 100
	// answersBeforeStop are received in each round before the stop.
	answersBeforeStop = 2000
)

// TestEveryAnswerOfAStoppedEdgeIsSpent stops an edge by SIGTERM while clients ask it, and starts it again. What
// the ledger has as spent is then what clients received, no more and no less.
func TestEveryAnswerOfAStoppedEdgeIsSpent(t *testing.T) {
	c := newCluster(t)
	p := c.run("one")
	asked, mark := c.account(10_000_000), c.account(1_000)
	for round := range *stops {
		before, _ := asked.got()
		endLoad, pipelined := c.load(asked), asked.pipeline(p)
		eventually(t, func() bool { now, _ := asked.got(); return now >= before+answersBeforeStop },
			func() string { return "clients are answered\n" + p.Tail() })
		p.stops()
		endLoad()
		pipelined.Wait()
		p.start()
		p.await("/readyz", http.StatusOK)
		mark.marks(p)
		answered, cut := asked.got()
		at, err := asked.read()
		require.NoError(t, err)
		require.Equal(t, answered, at.Spent, "stop %d: got what was answered, want what is spent; %d of those who waited have no answer", round, cut)
		require.Equal(t, at.Bought, at.Left+at.Leased+at.Spent, "%+v", at)
	}
}

// pipeline has clients send requests to an edge until their connections end, and counts the answers.
func (a *account) pipeline(p *process) *sync.WaitGroup {
	running := new(sync.WaitGroup)
	requests := strings.Repeat("GET "+company+" HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer "+a.key+"\r\n\r\n", sentAtOnce)
	for range pipelines {
		conn, err := net.Dial("tcp", p.address)
		require.NoError(a.cluster.t, err)
		running.Go(func() {
			for {
				if _, err := io.WriteString(conn, requests); err != nil {
					return
				}
			}
		})
		running.Go(func() {
			defer conn.Close()
			from := bufio.NewReader(conn)
			for {
				response, err := http.ReadResponse(from, nil)
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					return
				}
				a.count(response.StatusCode)
			}
		})
	}
	return running
}

// stops stops the process as an operator does; it must end by itself, without an error.
func (p *process) stops() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	require.NoError(p.t, p.Signal(syscall.SIGTERM))
	require.NoError(p.t, p.Wait(ctx), p.Tail())
}

// marks asks once, and waits until that is spent: the edge has then reported all charges before it too.
func (a *account) marks(p *process) {
	t := a.cluster.t
	t.Helper()
	eventually(t, func() bool { return a.ask(http.DefaultClient, p) == http.StatusOK }, func() string { return "an answer\n" + p.Tail() })
	answered, _ := a.got()
	eventually(t, func() bool {
		at, err := a.read()
		return err == nil && at.Spent >= answered
	}, func() string { return fmt.Sprintf("%d answers are reported\n%s", answered, p.Tail()) })
}
