// Package collector is a collector of traces in the test's process, which decodes what it gets.
package collector

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as a collector shows it. Ids are hex; Parent is empty for none.
type Span struct {
	Trace, ID, Parent string
	Service, Name     string
	Kind              tracepb.Span_SpanKind
	Failed            bool
	Events            []string
	// Attributes hold strings, booleans and int64.
	Attributes map[string]any
}

// Collector takes spans by OTLP over HTTP.
type Collector struct {
	// URL is its endpoint.
	URL string

	mu      sync.Mutex
	status  int
	spans   []Span
	headers []http.Header
	bodies  bytes.Buffer
	faults  []string
}

// Start starts a collector, which ends with the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{status: http.StatusOK}
	web := httptest.NewServer(http.HandlerFunc(c.serve))
	c.URL = web.URL
	t.Cleanup(func() {
		web.Close()
		for _, fault := range c.faults {
			t.Errorf("the collector: %s", fault)
		}
	})
	return c
}

// Answer sets the status of its answers from now on. Only requests answered with 200 are kept.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Named returns the spans received so far with the given name.
func (c *Collector) Named(name string) (found []Span) {
	for _, s := range c.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// Headers returns the headers of the requests received so far.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]http.Header(nil), c.headers...)
}

// Bytes are the bodies of all requests so far.
func (c *Collector) Bytes() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bodies.String()
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = append(c.headers, r.Header.Clone())
	c.bodies.Write(body)
	var data tracepb.TracesData
	switch {
	case err != nil:
		c.faults = append(c.faults, err.Error())
	case r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf":
		c.faults = append(c.faults, "not an export of traces: "+r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type"))
	case proto.Unmarshal(body, &data) != nil:
		c.faults = append(c.faults, "not the message of OTLP")
	case c.status == http.StatusOK:
		c.keep(&data)
	}
	w.Header().Set("Location", "/elsewhere") // for a status that redirects
	w.WriteHeader(c.status)
}

func (c *Collector) keep(data *tracepb.TracesData) {
	for _, resource := range data.ResourceSpans {
		service, _ := values(resource.Resource.GetAttributes())["service.name"].(string)
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				span := Span{
					Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
					Service: service, Name: s.Name, Kind: s.Kind, Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR,
					Attributes: values(s.Attributes),
				}
				for _, e := range s.Events {
					span.Events = append(span.Events, e.Name)
				}
				c.spans = append(c.spans, span)
			}
		}
	}
}

func values(list []*commonpb.KeyValue) map[string]any {
	found := map[string]any{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			found[a.Key] = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			found[a.Key] = v.BoolValue
		case *commonpb.AnyValue_IntValue:
			found[a.Key] = v.IntValue
		}
	}
	return found
}
