package sqld

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAServerHangsOnceItHasLeftAllChecksInARowUnanswered, whatever it answered before.
func TestAServerHangsOnceItHasLeftAllChecksInARowUnanswered(t *testing.T) {
	const none = 0
	limits := silence{checks: 2, limit: 2 * time.Second, pause: time.Millisecond}
	for name, c := range map[string]struct {
		answers []int
		hangs   bool
	}{
		"at once": {[]int{none, none}, true}, "never": {[]int{none, 200, none, 503, none}, false}, "later": {[]int{200, none, none}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := make(chan int, len(c.answers))
			for _, status := range c.answers {
				answers <- status
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case status := <-answers:
					if status == none {
						<-r.Context().Done()
						return
					}
					w.WriteHeader(status)
				default:
					cancel()
				}
			}))
			defer server.Close()
			require.Equal(t, c.hangs, hanging(t, limits).hangs(ctx, &run{asked: server.URL}))
			require.Empty(t, answers)
		})
	}
}

// TestAServerIsCheckedThroughNoProxy: where the environment names one that does not answer, a healthy server would be started
// again and again.
func TestAServerIsCheckedThroughNoProxy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer listener.Close()
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	proxied := usual.(*http.Transport).Clone()
	proxied.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: listener.Addr().String()})
	http.DefaultTransport = proxied
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		if r.URL.Path != healthPath {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	limits := silence{checks: 1, limit: 2 * time.Second, pause: time.Millisecond}
	require.False(t, hanging(t, limits).hangs(ctx, &run{asked: server.URL}))
	require.Error(t, ctx.Err(), "it was asked")
	late := make(chan struct{})
	defer time.AfterFunc(30*time.Second, func() { close(late) }).Stop()
	require.True(t, (&Server{}).lost(&run{asked: server.URL, ended: late}, nil), "nor is it asked for its database through one")
}

func TestAServerThatRefusesConnectionsDoesNotHang(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	limits := silence{checks: 2, limit: time.Second, pause: time.Millisecond}
	require.False(t, hanging(t, limits).hangs(ctx, &run{asked: address}))
}

// TestABusyReplicaIsGivenAMinute: it is not started again for answers that take seconds.
func TestABusyReplicaIsGivenAMinute(t *testing.T) {
	limits := new(Server).hung.or(hung)
	require.GreaterOrEqual(t, time.Duration(limits.checks)*limits.limit, time.Minute)
}

// TestALongWriteIsGivenMinutes: a transaction of sqld itself, such as VACUUM, may hold up every other write of a large database.
func TestALongWriteIsGivenMinutes(t *testing.T) {
	limits := new(Server).writeless.or(writeless)
	require.GreaterOrEqual(t, time.Duration(limits.checks)*limits.limit, 3*time.Minute)
}

func hanging(t *testing.T, limits silence) *Server {
	return &Server{Config: Config{Dir: t.TempDir()}, hung: limits}
}
