package reference

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/julienschmidt/httprouter"
	"github.com/stretchr/testify/require"
)

// TestPagesLeaveProcessorsToLookups, whoever asks for how many, and each is made once.
func TestPagesLeaveProcessorsToLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRenderer()
		limit := max(1, runtime.GOMAXPROCS(0)/2)
		begin := make(chan struct{})
		var mu sync.Mutex
		making, made := 0, 0
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				of := rendering{name: "start", base: fmt.Sprintf("https://%d.example", i%50)}
				content, err := r.page(of, func() ([]byte, error) {
					mu.Lock()
					making++
					made++
					mu.Unlock()
					<-begin
					mu.Lock()
					defer mu.Unlock()
					making--
					return []byte(of.base), nil
				})
				require.NoError(t, err)
				require.Equal(t, of.base, string(content))
			})
		}
		for done := 0; done < 50; {
			synctest.Wait()
			mu.Lock()
			require.LessOrEqual(t, making, limit)
			require.Positive(t, making)
			done = made
			mu.Unlock()
			begin <- struct{}{}
		}
		close(begin)
		all.Wait()
		require.Equal(t, 50, made)
	})
}

// TestAPageThatFailedIsMadeAgain, and fails nobody else's.
func TestAPageThatFailedIsMadeAgain(t *testing.T) {
	r := newRenderer()
	_, err := r.page(rendering{}, func() ([]byte, error) { return nil, http.ErrAbortHandler })
	require.ErrorIs(t, err, http.ErrAbortHandler)
	content, err := r.page(rendering{}, func() ([]byte, error) { return []byte("page"), nil })
	require.NoError(t, err)
	require.Equal(t, "page", string(content))
}

// TestAPageIsKeptAsItWasAskedFor, compressed or not: a client that asks for one form can't use the other.
func TestAPageIsKeptAsItWasAskedFor(t *testing.T) {
	site, err := New(Config{})
	require.NoError(t, err)
	router := httprouter.New()
	site.Routes(router)
	for encoding, zipped := range map[string]bool{"": false, "gzip": true} {
		request := httptest.NewRequest(http.MethodGet, "/guides", nil)
		request.Header.Set("Accept-Encoding", encoding)
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, request)
		require.Equal(t, encoding, recorder.Header().Get("Content-Encoding"))
		kept, ok := site.renderer.look(rendering{name: "guides", base: "http://example.com", zipped: zipped})
		require.True(t, ok, encoding)
		require.Equal(t, recorder.Body.Bytes(), kept, encoding)
	}
}

// TestMadeUpAddressesTakeNoMemory: each is an address of its own for pages to be kept under.
func TestMadeUpAddressesTakeNoMemory(t *testing.T) {
	site, err := New(Config{})
	require.NoError(t, err)
	router := httprouter.New()
	site.Routes(router)
	ask := func(host, path string) {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		request.Host = host
		router.ServeHTTP(httptest.NewRecorder(), request)
	}
	for path := range site.paths {
		ask("ours.example", path)
	}
	all := site.renderer.bytes
	require.Less(t, all, keptBytes/2, "the pages of one address")
	for i := range 2 * keptBytes / all {
		for path := range site.paths {
			ask(fmt.Sprintf("%d.example", i), path)
		}
		sum := 0
		for _, content := range site.renderer.kept {
			sum += len(content)
		}
		require.Equal(t, sum, site.renderer.bytes)
		require.LessOrEqual(t, sum, keptBytes)
	}
}
