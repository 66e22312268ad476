package server

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"regedge/handler"
)

// Tracer makes the spans of lookups. Sample decides whether one is traced, and returns the client's span
// from its traceparent; both may be empty.
type Tracer interface {
	trace.Tracer
	Sample(traceparent string) (parent trace.SpanContext, sampled bool)
}

// beginTrace starts the span of a lookup if it is traced. The Answerer gets it by its context.
func (s *Server) beginTrace(e *exchange) {
	if s.config.Tracer == nil {
		return
	}
	var asked string
	if values := e.request.Values("Traceparent"); len(values) == 1 {
		asked = values[0]
	}
	parent, sampled := s.config.Tracer.Sample(asked)
	if !sampled {
		return
	}
	name, about := e.spanName()
	about = append(about, semconv.URLScheme(s.scheme()))
	e.ctx, e.span = s.config.Tracer.Start(trace.ContextWithRemoteSpanContext(e.ctx, parent), name,
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(about...))
}

// spanName returns the name of a request's span, and the attributes of which it is made.
func (e *exchange) spanName() (name string, about []attribute.KeyValue) {
	name, about = knownMethod(e.request.Method), make([]attribute.KeyValue, 0, 3)
	if name == "other" {
		name, about = "HTTP", append(about, semconv.HTTPRequestMethodOther)
	} else {
		about = append(about, semconv.HTTPRequestMethodKey.String(name))
	}
	if e.route != routeOther {
		name, about = name+" "+e.route.String(), append(about, semconv.HTTPRoute(e.route.String()))
	}
	return name, about
}

func (s *Server) scheme() string {
	if s.config.TLS == nil {
		return "http"
	}
	return "https"
}

// endTrace ends the span of a lookup, with the fields of its log line except the client's address.
func (e *exchange) endTrace() {
	about := append(make([]attribute.KeyValue, 0, 8),
		semconv.HTTPResponseStatusCode(e.response.Status), attribute.String("regedge.request_id", e.id))
	if release := valueOf(e.response.Headers, handler.HeaderRegistryRelease); release != "" {
		about = append(about, attribute.String("regedge.release", release))
	}
	switch bill := &e.bill; {
	case bill.Sandbox:
		about = append(about, attribute.Bool("regedge.sandbox", true))
	case bill.Account != 0:
		about = append(about, attribute.Int64("regedge.account", bill.Account),
			attribute.Int64("regedge.key", bill.Key), attribute.Int64("regedge.cost", bill.Cost))
	}
	if e.response.Status >= 400 {
		code := string(problemCode(e.response.Body))
		about = append(about, attribute.String("regedge.code", code))
		if e.response.Status >= 500 {
			about = append(about, semconv.ErrorTypeKey.String(code))
			e.span.SetStatus(codes.Error, "")
		}
	}
	e.span.SetAttributes(about...)
	e.span.End()
}
