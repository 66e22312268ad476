package writer

import (
	"bytes"
	"io"
	"net/http"
)

// InProcess is a transport that hands each request to a handler in the same process:
// what runs over a network runs unchanged without one.
func InProcess(h http.Handler) http.RoundTripper { return inProcess{h} }

type inProcess struct{ handler http.Handler }

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := &captured{status: http.StatusOK, header: http.Header{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.handler.ServeHTTP(answer, r)
	}()
	select {
	case <-done:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.header, ContentLength: int64(answer.body.Len()),
		Body: io.NopCloser(&answer.body), Request: r,
	}, nil
}

// captured is a ResponseWriter that keeps the answer.
type captured struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (c *captured) Header() http.Header         { return c.header }
func (c *captured) WriteHeader(status int)      { c.status = status }
func (c *captured) Write(p []byte) (int, error) { return c.body.Write(p) }
