package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// tracesPath is where a collector takes traces, below its endpoint (OTLP 1.11, "OTLP/HTTP Request").
const tracesPath = "v1/traces"

// maxReply bounds how much of a collector's answer is read, so that its connection can be used again.
const maxReply = 64 << 10

// encoding is the media type of batches, and of the answers to them.
const encoding = "application/x-protobuf"

// isPage reports whether a media type means a web page: then no collector took the spans, whatever the status. Other
// unexpected types are accepted, since collectors are careless with them.
func isPage(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// collector sends spans over HTTP, for the library's exporter. The library's own HTTP client would bring gRPC with it.
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
	header.Set("Content-Type", encoding)
	return &collector{base.JoinPath(tracesPath).String(), header, &http.Client{
		Transport: config.Transport,
		// The header may hold a key: it goes to no other host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// pingLimit is how long an HTTP/2 connection may be silent before a ping, and how long the answer to the ping may take.
const pingLimit = 3 * time.Second

// newTransport returns a transport like http.DefaultTransport that also gives up a connection which was lost silently,
// as behind a firewall that has forgotten it. Otherwise all batches would be lost until TCP gives it up, after a
// quarter of an hour.
func newTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingLimit, PingTimeout: pingLimit}
	return transport
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
	reply, _ := io.ReadAll(io.LimitReader(response.Body, maxReply))
	contentType := response.Header.Get("Content-Type")
	switch {
	case response.StatusCode/100 != 2:
		return fmt.Errorf("%s answered %s", c.address, response.Status)
	case isPage(contentType), isPage(http.DetectContentType(reply)):
		return fmt.Errorf("%s answered with a web page: another service listens there, or a proxy or a sign-in page is between", c.address)
	case contentType == encoding:
		return readPartial(reply)
	}
	return nil
}

// partialError means that the collector took only a part of a batch (OTLP 1.11, "Partial Success").
type partialError struct {
	rejected int64 // spans, at least 1
	why      string
}

func (e *partialError) Error() string {
	return fmt.Sprintf("it rejected %d spans: %s", e.rejected, e.why)
}

// maxWhy bounds how much of the collector's message is logged, in bytes.
const maxWhy = 500

// readPartial returns a partialError if an ExportTraceServiceResponse says that spans were rejected. The package that
// defines this type would bring gRPC with it.
func readPartial(reply []byte) error {
	var partial partialError
	eachField(reply, func(number protowire.Number, _ uint64, message []byte) {
		if number != 1 { // partial_success
			return
		}
		eachField(message, func(number protowire.Number, value uint64, text []byte) {
			switch number {
			case 1:
				partial.rejected = int64(value)
			case 2:
				partial.why = strings.ToValidUTF8(string(text[:min(len(text), maxWhy)]), "")
			}
		})
	})
	if partial.rejected <= 0 {
		return nil
	}
	return &partial
}

// eachField calls visit with the fields of a message, as far as it can be read: with the value of a number, or the
// bytes of a text or a message.
func eachField(message []byte, visit func(number protowire.Number, value uint64, bytes []byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		var value uint64
		var bytes []byte
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return
		}
		message = message[n:]
		visit(number, value, bytes)
	}
}
