// Package tracing decides which requests are traced, and sends their spans to a collector by OTLP over
// HTTP. Other packages make spans through the interfaces of go.opentelemetry.io/otel/trace and do not
// know this one.
//
// Promises: a request never waits for the collector. Spans wait in a queue of bounded length; what does
// not fit, and what the collector does not take, is dropped and counted. A client that asks for traces
// gets at most Config.Asked a second, whatever trace ids it sends.
package tracing
