package server_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/julienschmidt/httprouter"
	"github.com/stretchr/testify/require"

	"regedge/host/server"
)

func TestPagesCanBeGiven(t *testing.T) {
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

func TestReadinessSaysWhyNot(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		var reason error
		r := start(t, server.Config{Answerer: fine, Ready: func() error { return reason }})
		response, body := r.get(t, "/readyz")
		require.Equal(t, 200, response.StatusCode)
		require.JSONEq(t, `{"status":"ready"}`, body)
		reason = errors.New("the registry is stale")
		response, body = r.get(t, "/readyz")
		require.Equal(t, 503, response.StatusCode)
		require.JSONEq(t, `{"status":"not ready","reason":"the registry is stale"}`, body)
		response, _ = r.get(t, "/healthz")
		require.Equal(t, 200, response.StatusCode)
	})
}

func TestPathsThatAreNoPageGoToTheAnswerer(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		for _, path := range []string{"/healthz/", "/problems", "/problems/a/b", "//", "/V1/llps/a"} {
			response, _ := r.get(t, path)
			require.Equal(t, "from-the-answerer", response.Header.Get("X-Request-Id"), path)
		}
	})
}
