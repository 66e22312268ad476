package server_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/stretchr/testify/require"

	"regedge/host/server"
)

func TestPagesAreServed(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, Pages: func(router *httprouter.Router) {
			router.GET("/guides/:name", func(w http.ResponseWriter, _ *http.Request, p httprouter.Params) {
				w.WriteHeader(http.StatusTeapot)
				io.WriteString(w, p.ByName("name"))
			})
		}})
		response, body := r.get(t, "/guides/first")
		require.Equal(t, http.StatusTeapot, response.StatusCode)
		require.Equal(t, "first", body)
		require.Equal(t, "from-the-server", response.Header.Get("X-Request-Id"))
		response, _ = r.get(t, "/")
		require.Equal(t, "from-the-answerer", response.Header.Get("X-Request-Id"), "no page of this path")
		response, _ = r.get(t, "/healthz")
		require.Equal(t, 200, response.StatusCode)
	})
}

func TestOwnPagesAreReadOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		response, err := r.client.Post(r.url+"/healthz", "", nil)
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, 405, response.StatusCode)
		require.Equal(t, []string{"GET, HEAD"}, response.Header.Values("Allow"))
		response, err = r.client.Head(r.url + "/healthz")
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, 200, response.StatusCode)
	})
}

func TestReadinessHasAReason(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		var reason error
		remark := ""
		r := start(t, server.Config{Answerer: fine, Ready: func() error { return reason }, Remark: func() string { return remark }})
		response, body := r.get(t, "/readyz")
		require.Equal(t, 200, response.StatusCode)
		require.JSONEq(t, `{"status":"ready"}`, body)
		remark = "there is no fallback"
		response, body = r.get(t, "/readyz")
		require.Equal(t, 200, response.StatusCode)
		require.JSONEq(t, `{"status":"ready","reason":"there is no fallback"}`, body)
		reason = errors.New("the registry is stale")
		response, body = r.get(t, "/readyz")
		require.Equal(t, 503, response.StatusCode)
		require.JSONEq(t, `{"status":"not ready","reason":"the registry is stale"}`, body)
		response, _ = r.get(t, "/healthz")
		require.Equal(t, 200, response.StatusCode)
	})
}

func TestOtherPathsGoToTheAnswerer(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		for _, path := range []string{"/healthz/", "/problems", "/problems/a/b", "//", "/V1/llps/a"} {
			response, _ := r.get(t, path)
			require.Equal(t, "from-the-answerer", response.Header.Get("X-Request-Id"), path)
		}
	})
}

// TestMissingPagesAreForBrowsers asks for paths that are none as a browser does and as programs do.
func TestMissingPagesAreForBrowsers(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		missing := func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
			http.Error(w, "a page", http.StatusNotFound)
		}
		r := start(t, server.Config{Answerer: fine, Pages: func(router *httprouter.Router) {
			router.GET("/guides/:name", missing)
			router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { missing(w, r, nil) })
		}})
		const browser, program = "text/html,application/xhtml+xml,*/*;q=0.8", "*/*"
		for _, ask := range []struct {
			method, path, accept string
			page                 bool
		}{
			{"GET", "/nowhere", browser, true}, {"GET", "/nowhere", program, false}, {"GET", "/nowhere", "", false},
			{"HEAD", "/nowhere", browser, true}, {"POST", "/nowhere", browser, false}, {"OPTIONS", "/nowhere", browser, false},
			{"GET", "/guides/none", browser, true}, {"GET", "/guides/none", program, false},
			{"GET", "/v1", browser, false}, {"GET", "/v1/nothing", browser, false}, {"GET", "/v1/llps/x", browser, false}, {"GET", "/v1x", browser, true},
		} {
			request, err := http.NewRequest(ask.method, r.url+ask.path, nil)
			require.NoError(t, err)
			request.Header.Set("Accept", ask.accept)
			response, err := r.client.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			want := "from-the-answerer"
			if ask.page {
				want = "from-the-server"
				require.Equal(t, 404, response.StatusCode, ask)
			}
			require.Equal(t, []string{want}, response.Header.Values("X-Request-Id"), ask)
		}
	})
}

func TestPageGetsSchemeHostAndClient(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, Pages: func(router *httprouter.Router) {
			router.GET("/where", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
				fmt.Fprint(w, r.TLS != nil, " ", r.Host, " ", r.URL, " ", server.Proxies{}.Client(r))
			})
		}})
		_, body := r.get(t, "/where?a=b")
		require.Equal(t, fmt.Sprint(strings.HasPrefix(r.url, "https:"), " ", r.addr, " /where?a=b 127.0.0.1"), body)
	})
}

func TestHEADOfAPageHasTheHeaderOfGET(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, Pages: func(router *httprouter.Router) {
			router.GET("/file", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
				http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader(strings.Repeat("a", 100_000)))
			})
		}})
		whole, body := r.get(t, "/file")
		head, err := r.client.Head(r.url + "/file")
		require.NoError(t, err)
		require.NoError(t, head.Body.Close())
		require.Len(t, body, 100_000)
		require.EqualValues(t, 100_000, head.ContentLength)
		whole.Header.Del("Date")
		head.Header.Del("Date")
		require.Equal(t, whole.Header, head.Header)
		part, err := http.NewRequest("GET", r.url+"/file", nil)
		require.NoError(t, err)
		part.Header.Set("Range", "bytes=5-9")
		response, err := r.client.Do(part)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusPartialContent, response.StatusCode)
		require.EqualValues(t, 5, response.ContentLength)
	})
}

// TestClientsThatDoNotReadLargePagesAreBounded also checks that other answers are not affected.
func TestClientsThatDoNotReadLargePagesAreBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine, WriteTimeout: time.Minute, Pages: func(router *httprouter.Router) {
			router.GET("/large", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
				w.Write(make([]byte, 16<<20)) // more than sockets hold
			})
		}})
		status := func() int {
			response, err := r.client.Get(r.url + "/large")
			require.NoError(t, err)
			defer response.Body.Close()
			_, err = io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			return response.StatusCode
		}
		var slow []net.Conn
		for range 32 {
			c, err := r.dial()
			require.NoError(t, err)
			slow = append(slow, c)
			_, err = io.WriteString(c, "GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
			require.NoError(t, err)
			_, err = io.ReadFull(c, make([]byte, 1))
			require.NoError(t, err)
		}
		require.Equal(t, http.StatusServiceUnavailable, status())
		response, _ := r.get(t, "/healthz")
		require.Equal(t, 200, response.StatusCode)
		for _, c := range slow {
			require.NoError(t, c.Close())
		}
		require.Eventually(t, func() bool { return status() == 200 }, time.Minute, 10*time.Millisecond)
	})
}

// TestALargePageThatWasSentLeavesItsPlace to the next one.
func TestALargePageThatWasSentLeavesItsPlace(t *testing.T) {
	for name, start := range map[string]starter{"plain": start, "TLS": startSecure, "HTTP2": startSecure} {
		t.Run(name, func(t *testing.T) {
			r := start(t, server.Config{Answerer: fine, Pages: func(router *httprouter.Router) {
				router.GET("/large", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) { w.Write(make([]byte, 100<<10)) })
			}})
			client := r.from(t, "127.0.0.1", name == "HTTP2")
			for n := range 40 { // more than are sent at once
				require.Equal(t, 200, ask(client, r.url+"/large", ""), "page %d", n)
			}
		})
	}
}
