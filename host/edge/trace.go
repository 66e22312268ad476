package edge

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/engine"
	"regedge/host/server"
)

// traced wraps the parts of an engine so that they make the spans of a lookup. Without a tracer it returns
// them unchanged.
func (n *Node) traced(parts engine.Parts) engine.Parts {
	if n.config.Tracer == nil {
		return parts
	}
	parts.Access = tracedDatabase{parts.Access, "access"}
	parts.Registry = tracedDatabase{parts.Registry, "registry"}
	parts.Meter = tracedMeter{parts.Meter}
	return parts
}

// tracerOf returns the tracer of the request to which a context belongs, nil if it is not traced.
func tracerOf(ctx context.Context) trace.Tracer {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return nil
	}
	return span.TracerProvider().Tracer("regedge")
}

// end ends a span. err only sets its status: the text goes to the log, with the request id.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// tracedAnswerer makes a span of each run of the component, or of the native handler.
type tracedAnswerer struct {
	server.Answerer
	name string
}

// spanOf is the name of the span that tracedAnswerer makes.
func spanOf(engine string) string {
	if engine == Native {
		return "native"
	}
	return "component"
}

// Answer implements server.Answerer.
func (t tracedAnswerer) Answer(ctx context.Context, request *handler.Request, response *handler.Response) error {
	tracer := tracerOf(ctx)
	if tracer == nil {
		return t.Answerer.Answer(ctx, request, response)
	}
	ctx, span := tracer.Start(ctx, t.name)
	err := t.Answerer.Answer(ctx, request, response)
	end(span, err)
	return err
}

// tracedDatabase makes a span of each statement.
type tracedDatabase struct {
	engine.Database
	name string
}

// Query implements engine.Database.
func (t tracedDatabase) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	tracer := tracerOf(ctx)
	if tracer == nil {
		return t.Database.Query(ctx, statement, args, dst)
	}
	ctx, span := tracer.Start(ctx, "SELECT "+t.name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.DBSystemNameSQLite, semconv.DBNamespace(t.name), semconv.DBOperationName("SELECT")))
	err := t.Database.Query(ctx, statement, args, dst)
	if err == nil {
		span.SetAttributes(semconv.DBResponseReturnedRows(dst.Rows()))
	}
	end(span, err)
	return err
}

// tracedMeter makes a span of each call of the meter.
type tracedMeter struct{ engine.Meter }

// Charge implements engine.Meter.
func (t tracedMeter) Charge(ctx context.Context, r charge.Request) charge.Verdict {
	tracer := tracerOf(ctx)
	if tracer == nil {
		return t.Meter.Charge(ctx, r)
	}
	ctx, span := tracer.Start(ctx, "charge")
	v := t.Meter.Charge(ctx, r)
	span.SetAttributes(attribute.String("regedge.code", v.Code), attribute.Bool("regedge.found", r.Outcome == charge.Found),
		attribute.Bool("regedge.replayed", v.Replayed))
	span.End()
	return v
}

// Void implements engine.Meter.
func (t tracedMeter) Void(ctx context.Context, id string) error {
	tracer := tracerOf(ctx)
	if tracer == nil {
		return t.Meter.Void(ctx, id)
	}
	ctx, span := tracer.Start(ctx, "void")
	err := t.Meter.Void(ctx, id)
	end(span, err)
	return err
}
