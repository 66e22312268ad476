package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/handler"
	"regedge/host/server"
	"regedge/wasm"
	"regedge/wasm/labels"
)

// Parts are what a handler is joined from.
type Parts struct {
	Access, Registry Database
	Meter            Meter
	Clock            handler.Clock
	Random           handler.Random
	// DocsURL begins the type of every problem, without a slash at its end.
	DocsURL string
}

// The meter's address and token inside the process. No packet ever goes there: the
// engine answers calls to this address itself and refuses every other.
const (
	meterURL   = "http://meter.internal"
	meterToken = "in-process"
)

// Component runs the service's component in its engine. It is safe for concurrent use.
type Component struct{ engine *Engine }

// Limits bound the component. A zero limit is the engine's default.
type Limits struct {
	// Instances is the most requests that are worked on at once.
	Instances int
	// Fresh gives each request a new instance, as Spin does, instead of a pooled one.
	Fresh bool
}

// NewComponent compiles the component that is embedded in the program.
func NewComponent(ctx context.Context, parts Parts, limits Limits) (*Component, error) {
	e, err := New(ctx, Config{
		Component: wasm.Component,
		Databases: map[string]Database{
			labels.AccessDatabase: parts.Access, labels.RegistryDatabase: parts.Registry,
		},
		Meter: parts.Meter,
		Variables: map[string]string{
			labels.MeterURL: meterURL, labels.MeterToken: meterToken, labels.DocsURL: parts.DocsURL,
		},
		Clock: parts.Clock, Random: parts.Random,
		MaxInstances: limits.Instances, Fresh: limits.Fresh,
	})
	if err != nil {
		return nil, fmt.Errorf("start component: %w", err)
	}
	return &Component{e}, nil
}

// Close waits for what is being answered and frees the engine.
func (c *Component) Close(ctx context.Context) error { return c.engine.Close(ctx) }

// Stats counts the engine's instances.
func (c *Component) Stats() Stats { return c.engine.Stats() }

// call is the engine's side of a request, kept for the next one.
type call struct {
	request  Request
	response Response
}

var calls = sync.Pool{New: func() any { return new(call) }}

// Answer serves one request. What a database tells the guest in an error, which the
// client is not told, is a *server.Answered.
func (c *Component) Answer(ctx context.Context, request *server.Request, response *handler.Response) error {
	k := calls.Get().(*call)
	k.request.Method, k.request.Target = request.Method, request.Target
	k.request.Headers = appendHeaders(k.request.Headers[:0], request)
	// The engine fills the server's own memory, so that no byte is copied twice.
	k.response.Headers, k.response.Body = response.Headers[:0], response.Body[:0]
	err := c.engine.Serve(ctx, &k.request, &k.response)
	response.Status, response.Headers, response.Body = k.response.Status, k.response.Headers, k.response.Body
	if err == nil && k.response.Cause != nil {
		err = &server.Answered{Cause: k.response.Cause}
	}
	clear(k.request.Headers)
	*k = call{request: Request{Headers: k.request.Headers[:0]}}
	calls.Put(k)
	if errors.Is(err, ErrOverloaded) {
		return errors.Join(server.ErrOverloaded, err)
	}
	return err
}

// appendHeaders lists the client's fields and, in place of what the client may have
// said of it, the address that the server vouches for.
func appendHeaders(list []Header, request *server.Request) []Header {
	for _, field := range request.Header {
		if !strings.EqualFold(field.Name, labels.ClientAddrHeader) {
			list = append(list, field)
		}
	}
	return append(list, Header{Name: labels.ClientAddrHeader, Value: request.Client})
}

// Register registers the counts of the engine's instances.
func (c *Component) Register(registry prometheus.Registerer) error {
	count := func(name, help string, of func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(of()) })
	}
	for _, collector := range []prometheus.Collector{
		count("regedge_instances_created_total", "Instances of the component that were made.",
			func() int64 { return c.Stats().Created }),
		count("regedge_instances_discarded_total", "Instances thrown away after a failure.",
			func() int64 { return c.Stats().Discarded }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "regedge_instances_busy", Help: "Instances at work now.",
		}, func() float64 { return float64(c.Stats().Busy) }),
	} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}
