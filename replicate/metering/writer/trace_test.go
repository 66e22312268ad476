package writer

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"regedge/replicate/metering/syncproto"
)

// tracing samples everything, and notes what it was asked for.
type tracing struct {
	trace.Tracer
	asked []string
}

func (s *tracing) Sample(traceparent string) (trace.SpanContext, bool) {
	s.asked = append(s.asked, traceparent)
	return trace.SpanContext{}, true
}

// traceAll makes a writer trace all, and returns its spans.
func traceAll(w *Writer) (*tracing, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	tracer := &tracing{Tracer: sdk.NewTracerProvider(sdk.WithSyncer(spans)).Tracer("test")}
	w.config.Tracer = tracer
	return tracer, spans
}

// attributesOf returns the attributes of a span as text.
func attributesOf(s tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// TestASpanSaysWhatBecameOfItsRequest: its status, and whether the writer failed.
func TestASpanSaysWhatBecameOfItsRequest(t *testing.T) {
	w, _ := openUnrun(t)
	tracer, spans := traceAll(w)
	ask := func(traceparents ...string) tracetest.SpanStub {
		spans.Reset()
		r := httptest.NewRequest(http.MethodGet, "/v1/accounts/99", nil)
		r.Header.Set("Authorization", "Bearer "+firstOperator)
		for _, traceparent := range traceparents {
			r.Header.Add("Traceparent", traceparent)
		}
		answer := httptest.NewRecorder()
		w.Handler().ServeHTTP(answer, r)
		require.Len(t, spans.GetSpans(), 1)
		require.Equal(t, answer.Header().Get(RequestIDHeader), attributesOf(spans.GetSpans()[0])["regedge.request_id"])
		return spans.GetSpans()[0]
	}
	span := ask("a")
	require.Equal(t, "GET /v1/accounts/:id", span.Name)
	require.Equal(t, "404", attributesOf(span)["http.response.status_code"])
	require.Equal(t, codes.Unset, span.Status.Code, "that is no failure of the writer")
	ask("a", "b")
	require.Equal(t, []string{"a", ""}, tracer.asked, "two say nothing")
	require.NoError(t, w.config.Ledger.Close())
	span = ask()
	require.Equal(t, "500", attributesOf(span)["http.response.status_code"])
	require.Equal(t, codes.Error, span.Status.Code)
}

// TestMessagesOfEdgesAreTraced, but not those that wait: they would be the longest, and say nothing.
func TestMessagesOfEdgesAreTraced(t *testing.T) {
	w, client, _ := runForRoles(t)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	_, spans := traceAll(w)
	require.Equal(t, http.StatusOK, syncAs(w, node.Token, syncproto.Message{Hello: &syncproto.Hello{Boot: 1}}).Code)
	got := spans.GetSpans()
	require.Len(t, got, 2)
	require.Equal(t, []string{"commit", "POST " + SyncPath}, []string{got[0].Name, got[1].Name})
	require.Equal(t, got[1].SpanContext.SpanID(), got[0].Parent.SpanID())
	require.Equal(t, "one", attributesOf(got[1])["regedge.node"])
	spans.Reset()
	held := syncproto.Message{Sync: &syncproto.Sync{HoldMillis: 1}}
	_ = syncAs(w, node.Token, held)
	require.Empty(t, spans.GetSpans())

	_, span := w.traceSync(httptest.NewRequest(http.MethodPost, SyncPath, nil), "one", syncproto.Message{Hello: &syncproto.Hello{}})
	endSync(span, ErrUnavailable)
	require.Equal(t, codes.Error, spans.GetSpans()[0].Status.Code)
	require.Equal(t, "unavailable", spans.GetSpans()[0].Status.Description)
}

// TestAChangeThatIsNotMadeHasASpanOfItsCommit, which says so.
func TestAChangeThatIsNotMadeHasASpanOfItsCommit(t *testing.T) {
	w, client, _ := runForRoles(t)
	_, spans := traceAll(w)
	_, err := client.RevokeKey(t.Context(), 99)
	require.ErrorIs(t, err, ErrNotFound)
	got := spans.GetSpans()
	require.NotEmpty(t, got)
	require.Equal(t, "commit", got[0].Name)
	require.Equal(t, codes.Error, got[0].Status.Code)
}

// TestEachOperationOfAGroupHasASpanOfItsCommit, if its request has one.
func TestEachOperationOfAGroupHasASpanOfItsCommit(t *testing.T) {
	w, _ := openUnrun(t)
	tracer, spans := traceAll(w)
	_, parent := tracer.Start(t.Context(), "request")
	began := time.Now().Add(-time.Hour)
	w.traceCommit([]*operation{{}, {span: parent}, {span: parent, readOnly: true}}, began, errors.New("disk full"))
	got := spans.GetSpans()
	require.Len(t, got, 2)
	require.Equal(t, []string{"commit", "read"}, []string{got[0].Name, got[1].Name})
	for _, span := range got {
		require.Equal(t, parent.SpanContext().SpanID(), span.Parent.SpanID())
		require.Equal(t, "3", attributesOf(span)["regedge.operations"])
		require.True(t, began.Equal(span.StartTime), "it took as long as the commit")
		require.Equal(t, codes.Error, span.Status.Code)
	}
}
