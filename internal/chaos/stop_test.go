package chaos

import (
	"bufio"
	"context"
	"crypto/tls"
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
	// streamsOfClient are open at once on each connection of HTTP/2.
	streamsOfClient = 50
	// answersBeforeStop are received in each round before the stop.
	answersBeforeStop = 2000
)

// TestEveryAnswerOfAStoppedEdgeIsSpent stops an edge by SIGTERM while clients ask it, and starts it again. What
// the ledger has as spent is then what clients received, no more and no less: in the clear, with
// TLS, and as streams of HTTP/2.
func TestEveryAnswerOfAStoppedEdgeIsSpent(t *testing.T) {
	for name, edge := range map[string]func(*cluster) *process{
		"plain": func(c *cluster) *process { return c.run("one") },
		"TLS": func(c *cluster) *process {
			p, _ := c.secure("one")
			return p
		},
		"HTTP/2": func(c *cluster) *process {
			p, _ := c.secure("one")
			p.secured.ForceAttemptHTTP2 = true
			answer, err := p.dials().Get(p.url("/readyz"))
			require.NoError(c.t, err)
			defer answer.Body.Close()
			require.Equal(c.t, 2, answer.ProtoMajor)
			return p
		},
	} {
		t.Run(name, func(t *testing.T) { stopUnderLoad(t, edge) })
	}
}

func stopUnderLoad(t *testing.T, edge func(*cluster) *process) {
	c := newCluster(t)
	p := edge(c)
	asked, mark := c.account(10_000_000), c.account(1_000)
	for round := range *stops {
		before, _ := asked.got()
		endLoad, many := c.load(asked), asked.pipeline
		if p.secured != nil && p.secured.ForceAttemptHTTP2 {
			many = asked.streams
		}
		running := many(p)
		eventually(t, func() bool { now, _ := asked.got(); return now >= before+answersBeforeStop },
			func() string { return "clients are answered\n" + p.Tail() })
		p.stops()
		endLoad()
		running.Wait()
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

// streams has clients ask an edge on connections of HTTP/2, with many streams each, until one has no answer.
func (a *account) streams(p *process) *sync.WaitGroup {
	running := new(sync.WaitGroup)
	for range pipelines {
		client := p.dials()
		for range streamsOfClient {
			running.Go(func() {
				for a.ask(client, p) != 0 {
				}
			})
		}
	}
	return running
}

// pipeline has clients send requests to an edge until their connections end, and counts the answers.
func (a *account) pipeline(p *process) *sync.WaitGroup {
	running := new(sync.WaitGroup)
	requests := strings.Repeat("GET "+company+" HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer "+a.key+"\r\n\r\n", sentAtOnce)
	for range pipelines {
		conn, err := p.dial()
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

// dial connects to the process for HTTP/1.1.
func (p *process) dial() (net.Conn, error) {
	if p.secured == nil {
		return net.Dial("tcp", p.address)
	}
	return tls.Dial("tcp", p.address, p.secured.TLSClientConfig)
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
	eventually(t, func() bool { return a.ask(p.dials(), p) == http.StatusOK }, func() string { return "an answer\n" + p.Tail() })
	answered, _ := a.got()
	eventually(t, func() bool {
		at, err := a.read()
		return err == nil && at.Spent >= answered
	}, func() string { return fmt.Sprintf("%d answers are reported\n%s", answered, p.Tail()) })
}
