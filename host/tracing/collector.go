package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// tracesPath is where a collector takes traces, below its endpoint (OTLP 1.11, "OTLP/HTTP Request").
const tracesPath = "v1/traces"

// maxReply bounds how much of a collector's answer is read, so that its connection can be used again.
const maxReply = 64 << 10

// sniffed is how much of an answer is needed to detect its type (http.DetectContentType).
const sniffed = 512

// isPage reports whether a media type means a web page: its sender took no spans, whatever the status. Other
// unexpected types are accepted, since collectors are careless with them.
func isPage(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// collector sends spans over HTTP. It is the client of the library's exporter: its own client over HTTP
// brings gRPC with it.
type collector struct {
	address string
	header  http.Header
	client  *http.Client
}

func newCollector(config Config) (*collector, error) {
	base, err := url.Parse(config.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint of traces: %w", err)
	}
	header := config.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/x-protobuf")
	return &collector{base.JoinPath(tracesPath).String(), header, &http.Client{
		// The header may hold a key: it goes to no other host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Start implements otlptrace.Client.
func (c *collector) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *collector) Stop(context.Context) error { return nil }

// UploadTraces implements otlptrace.Client. It tries once: a later batch says as much.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) // same encoding as ExportTraceServiceRequest
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = c.header
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	start, _ := io.ReadAll(io.LimitReader(response.Body, sniffed))
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxReply))
	switch {
	case response.StatusCode/100 != 2:
		return fmt.Errorf("%s answered %s", c.address, response.Status)
	case isPage(response.Header.Get("Content-Type")), isPage(http.DetectContentType(start)):
		return fmt.Errorf("%s answered with a web page: another service listens there, or a proxy or a sign-in page is between", c.address)
	}
	return nil
}
