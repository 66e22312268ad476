package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/server"
)

func TestLogHasNoSecrets(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		request, err := http.NewRequest("GET", r.url+"/v1/companies/SECRETCIN?name=SECRETNAME", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer SECRETKEY")
		request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		response, err := r.client.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		r.get(t, "/SECRETPATH")
		request.Header.Set("Traceparent", "00-SECRET")
		request.Method = "SECRETMETHOD"
		response, err = r.client.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		require.NoError(t, r.stop())
		require.NotContains(t, r.log.String(), "SECRET")
		lines := r.log.lines()
		require.Len(t, lines, 3, "one line a request")
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
		require.Equal(t, "GET", line["method"])
		require.Equal(t, "/v1/companies/{cin}", line["route"])
		require.EqualValues(t, 200, line["status"])
		require.Equal(t, "from-the-answerer", line["request_id"])
		require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", line["traceparent"])
		require.Equal(t, "127.0.0.1", line["client"])
		require.Contains(t, line, "duration_us")
	})
}

// TestNothingOfAMalformedRequestIsLogged or counted: a key may be at any place of what a client sends.
func TestNothingOfAMalformedRequestIsLogged(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, MaxHeaderBytes: 4 << 10})
		for _, request := range []string{
			"SECRET\r\n\r\n", "SECRET SECRET SECRET\r\nSECRET\r\n\r\n", "GET /SECRET HTTP/SECRET\r\nHost: h\r\n\r\n",
			"G@SECRET /SECRET HTTP/1.1\r\nHost: h\r\n\r\n", "GET SECRET HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET /SECRET SECRET HTTP/1.1\r\nHost: h\r\n\r\n", "GET /SECRET HTTP/1.1\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: SECRET SECRET\r\n\r\n", "GET http://SECRET@h/SECRET HTTP/1.1\r\nHost: h\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nAuthorization Bearer SECRET\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nSECRET SECRET: SECRET\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX: SECRET\x00\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: SECRET\r\n\r\n",
			"GET /SECRET HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("SECRET", 1<<10) + "\r\n\r\n",
		} {
			require.Contains(t, "400 431", statusesIn(r.raw(t, request)), "%q", request)
		}
		var metrics bytes.Buffer
		families, err := r.metrics.Gather()
		require.NoError(t, err)
		for _, family := range families {
			fmt.Fprintln(&metrics, family)
		}
		require.NoError(t, r.stop())
		require.Contains(t, r.log.String(), `"route":"invalid"`)
		require.NotContains(t, r.log.String()+metrics.String(), "SECRET")
	})
}

func TestRequestsAreCountedByRouteAndStatus(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		for _, path := range []string{
			"/v1/companies/a", "/v1/companies/b", "/v1/directors/1", "/v1/llps/c", "/v1/search/companies",
			"/v1/search/llps", "/v1/search/else", "/nowhere", "/healthz",
		} {
			r.get(t, path)
		}
		require.NoError(t, r.stop())
		counted := httptest.NewRecorder()
		promhttp.HandlerFor(r.metrics, promhttp.HandlerOpts{}).ServeHTTP(counted, httptest.NewRequest("GET", "/", nil))
		var got []string
		for line := range strings.Lines(counted.Body.String()) {
			if strings.HasPrefix(line, "regedge_requests_total{") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		require.Equal(t, []string{
			`regedge_requests_total{route="/v1/companies/{cin}",status="200"} 2`,
			`regedge_requests_total{route="/v1/directors/{din}",status="200"} 1`,
			`regedge_requests_total{route="/v1/llps/{llpin}",status="200"} 1`,
			`regedge_requests_total{route="/v1/search/companies",status="200"} 1`,
			`regedge_requests_total{route="/v1/search/llps",status="200"} 1`,
			`regedge_requests_total{route="other",status="200"} 2`,
			`regedge_requests_total{route="page",status="200"} 1`,
		}, got)
	})
}

// TestALineSaysWhoPaidForWhat: account, id of the key, cost, release and problem code.
func TestALineSaysWhoPaidForWhat(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		bills := map[string]server.Bill{
			"/v1/companies/found": {Account: 7, Key: 12, Cost: 1}, "/v1/llps/refused": {Account: 7, Key: 13},
			"/v1/directors/sandbox": {Sandbox: true}, "/v1/companies/fails": {Account: 7, Key: 12, Cost: 1},
		}
		r := start(t, server.Config{Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
			*server.BillOf(ctx) = bills[q.Target]
			switch q.Target {
			case "/v1/llps/refused":
				p, _ := handler.FindProblem(charge.InsufficientCredits)
				*a = *handler.NewProblem("https://registry.example", p, "id", 0)
			case "/v1/companies/fails":
				return errors.New("the guest is gone")
			default:
				_ = fine(ctx, q, a)
				a.Headers = append(a.Headers, handler.Header{Name: handler.HeaderRegistryRelease, Value: "2025-05-05.1"})
			}
			return nil
		})})
		for _, target := range []string{"/v1/companies/found", "/v1/llps/refused", "/v1/directors/sandbox", "/v1/companies/fails", "/healthz"} {
			r.get(t, target)
		}
		require.NoError(t, r.stop())
		var got []string
		for _, text := range r.log.lines() {
			var line map[string]any
			require.NoError(t, json.Unmarshal([]byte(text), &line))
			if line["msg"] == "request" {
				got = append(got, fmt.Sprintf("%v %v %v %v %v %v %v", line["status"], line["account"], line["key"], line["cost"], line["sandbox"], line["code"], line["release"]))
			}
		}
		require.Equal(t, []string{
			"200 7 12 1 <nil> <nil> 2025-05-05.1",
			"402 7 13 0 <nil> insufficient_credits <nil>",
			"200 <nil> <nil> <nil> true <nil> 2025-05-05.1",
			"500 7 12 0 <nil> internal_error <nil>",
			"200 <nil> <nil> <nil> <nil> <nil> <nil>",
		}, got)
	})
}

// TestAnswersAreTimedByOutcome, in native histograms too, and problems are counted by code.
func TestAnswersAreTimedByOutcome(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: answerFunc(func(_ context.Context, q *handler.Request, a *handler.Response) error {
			if p, known := handler.FindProblem(strings.TrimPrefix(q.Target, "/v1/companies/")); known {
				*a = *handler.NewProblem("", p, "id", 0)
				return nil
			}
			return fine(t.Context(), q, a)
		})})
		for _, code := range []string{
			"x", handler.CompanyNotFound, handler.InvalidCIN, charge.InsufficientCredits, charge.RateLimitExceeded,
			charge.RateLimitExceeded, handler.RegistryUnavailable,
		} {
			r.get(t, "/v1/companies/"+code)
		}
		require.NoError(t, r.stop())
		got := map[string]uint64{}
		families, err := r.metrics.Gather()
		require.NoError(t, err)
		for _, family := range families {
			for _, m := range family.GetMetric() {
				labels := map[string]string{}
				for _, label := range m.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				switch family.GetName() {
				case "regedge_request_seconds":
					require.Equal(t, "/v1/companies/{cin}", labels["route"])
					require.NotEmpty(t, m.GetHistogram().GetPositiveSpan(), "a native histogram")
					require.NotEmpty(t, m.GetHistogram().GetBucket(), "and a classic one")
					got[labels["outcome"]] = m.GetHistogram().GetSampleCount()
				case "regedge_problems_total":
					if count := m.GetCounter().GetValue(); count > 0 {
						got[labels["code"]] = uint64(count)
					}
				}
			}
		}
		require.Equal(t, map[string]uint64{
			"answered": 1, "not_found": 1, "invalid": 1, "refused": 3, "failed": 1,
			handler.CompanyNotFound: 1, handler.InvalidCIN: 1, charge.InsufficientCredits: 1,
			charge.RateLimitExceeded: 2, handler.RegistryUnavailable: 1,
		}, got)
	})
}

func TestLogBufferWritesWholeLines(t *testing.T) {
	var to bytes.Buffer
	b := server.NewLogBuffer(&to)
	b.Write([]byte("one\n"))
	require.Empty(t, to.String())
	require.NoError(t, b.Flush())
	require.Equal(t, "one\n", to.String())
	long := strings.Repeat("x", 40<<10) + "\n"
	b.Write([]byte(long))
	b.Write([]byte(long))
	require.Equal(t, "one\n"+long+long, to.String(), "a full buffer does not wait")
}

// TestLinesOfManyRequestsAreNotMixed.
func TestLinesOfManyRequestsAreNotMixed(t *testing.T) {
	const writers, each = 8, 1000
	var to bytes.Buffer
	buffer := server.NewLogBuffer(&to)
	line := []byte(strings.Repeat("x", 99) + "\n")
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for range each {
				_, _ = buffer.Write(line)
			}
		})
	}
	running.Wait()
	require.NoError(t, buffer.Flush())
	require.Equal(t, bytes.Repeat(line, writers*each), to.Bytes())
}

// full is a disk without room.
type full struct{ tried int }

func (f *full) Write([]byte) (int, error) {
	f.tried++
	return 0, syscall.ENOSPC
}

// TestLinesForWhichThereIsNoRoomAreLost: they would else fill the memory.
func TestLinesForWhichThereIsNoRoomAreLost(t *testing.T) {
	disk := &full{}
	buffer := server.NewLogBuffer(disk)
	long := bytes.Repeat([]byte("x"), 64<<10)
	for range 3 {
		_, err := buffer.Write(long)
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
	require.NoError(t, buffer.Flush(), "nothing is left")
	require.Equal(t, 3, disk.tried)
}

// TestTheLastLinesAreWrittenAtTheEnd.
func TestTheLastLinesAreWrittenAtTheEnd(t *testing.T) {
	var to bytes.Buffer
	buffer := server.NewLogBuffer(&to)
	_, err := buffer.Write([]byte("the last\n"))
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	buffer.Run(ended, time.Hour)
	require.Equal(t, "the last\n", to.String())
}

// TestNoRequestWaitsForALogThatIsNotRead, such as a pipe whose reader hangs: lines wait, and too many are dropped and
// counted.
func TestNoRequestWaitsForALogThatIsNotRead(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	defer writer.Close()
	buffer := server.NewLogBuffer(writer)
	lost := make(chan int64, 100)
	buffer.Lost = func(lines int64) { lost <- lines }
	line := []byte(strings.Repeat("x", 99) + "\n")
	const lines = 100_000 // 10 MB
	began := time.Now()
	for range lines {
		_, _ = buffer.Write(line)
	}
	require.Less(t, time.Since(began), 10*time.Second, "one write is waited for, for a second")
	require.ErrorIs(t, buffer.Flush(), server.ErrLogHangs, "nor does the end of the process wait")

	read := make(chan int, 1)
	go func() {
		content, _ := io.ReadAll(reader)
		read <- bytes.Count(content, line)
	}()
	dropped := <-lost
	require.Greater(t, dropped, int64(lines/2))
	_, err = buffer.Write(line)
	require.NoError(t, err)
	require.NoError(t, buffer.Flush())
	for range 10 {
		_, err = buffer.Write([]byte("\n"))
		require.NoError(t, err)
		require.NoError(t, buffer.Flush())
	}
	require.NoError(t, writer.Close())
	require.EqualValues(t, lines-dropped+1, <-read)
	require.Empty(t, lost, "the dropped lines are told once")
}

// TestALogOfFewLinesIsWrittenAtOnce, and goes on by itself after its reader hung.
func TestALogOfFewLinesIsWrittenAtOnce(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	lines := server.NewLogLines(writer)
	_, err = lines.Write([]byte("first\n"))
	require.NoError(t, err)
	piece := make([]byte, 100)
	n, err := reader.Read(piece)
	require.NoError(t, err)
	require.Equal(t, "first\n", string(piece[:n]))

	long := append(bytes.Repeat([]byte("x"), 1<<20), '\n')
	_, err = lines.Write(long)
	require.ErrorIs(t, err, server.ErrLogHangs)
	_, err = lines.Write([]byte("last\n"))
	require.NoError(t, err, "nobody waits a second time")
	content := make([]byte, len(long)+len("last\n"))
	_, err = io.ReadFull(reader, content)
	require.NoError(t, err)
	require.Equal(t, "last\n", string(content[len(long):]))
	require.NoError(t, writer.Close())
}
