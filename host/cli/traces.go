package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/hint"
	"regedge/host/service"
	"regedge/host/tracing"
)

// traceFlags are the flags of the commands that send traces.
type traceFlags struct {
	Traces           string  `placeholder:"URL" help:"OTLP/HTTP endpoint of a collector, such as http://127.0.0.1:4318, that gets traces; none by default."`
	TracesShare      float64 `default:"0.01" placeholder:"SHARE" help:"Share of the requests that are traced, from 0 to 1 (${default})."`
	TracesAsked      int     `default:"10" placeholder:"N" help:"Most requests a second that are traced beside that share, since the traceparent of their client asks for it (${default})."`
	TracesHeaderFile string  `type:"path" placeholder:"FILE" help:"File of header lines that the collector wants, such as Authorization: Bearer TOKEN."`
}

// maxTracesAsked keeps the queue of spans from being filled by clients alone.
const maxTracesAsked = 100

func (f *traceFlags) check() error {
	if !(f.TracesShare >= 0 && f.TracesShare <= 1) {
		return errors.New("--traces-share is from 0 to 1")
	}
	if f.TracesAsked < 0 || f.TracesAsked > maxTracesAsked {
		return fmt.Errorf("--traces-asked is from 0 to %d", maxTracesAsked)
	}
	if f.Traces == "" {
		if f.TracesHeaderFile != "" {
			return errors.New("--traces-header-file needs --traces, the collector that gets the header")
		}
		return nil
	}
	u, err := url.Parse(f.Traces)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--traces is not the endpoint of a collector, such as http://127.0.0.1:4318")
	}
	if f.TracesHeaderFile != "" && u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), "0")) {
		return errors.New("--traces goes to another machine in the clear, and --traces-header-file holds a secret: give an https endpoint")
	}
	return nil
}

// tracer makes the tracer of a process, and the service that sends its spans; the tracer is nil without
// --traces. Its metrics are always there.
func (f *traceFlags) tracer(ctx context.Context, name string, log *slog.Logger, registry prometheus.Registerer) (*tracing.Tracer, []service.Service, error) {
	metrics := tracing.NewMetrics(registry)
	if f.Traces == "" {
		return nil, nil, nil
	}
	header, err := readHeader(f.TracesHeaderFile)
	if err != nil {
		return nil, nil, err
	}
	tracer, err := tracing.New(ctx, tracing.Config{
		Endpoint: f.Traces, Header: header, Share: f.TracesShare, Asked: f.TracesAsked,
		Service: "regedge-" + name, Version: programVersion(), Log: log, Metrics: metrics,
	})
	if err != nil {
		return nil, nil, err
	}
	return tracer, []service.Service{{Name: "traces", Run: tracer.Run}}, nil
}

// readHeader reads header lines from a file, if there is one. Its error does not quote the file, which
// holds a secret.
func readHeader(file string) (http.Header, error) {
	if file == "" {
		return nil, nil
	}
	content, err := readSecret(file)
	if err != nil {
		return nil, fmt.Errorf("read header of --traces-header-file: %w", err)
	}
	lines := strings.TrimSpace(string(content)) + "\r\n\r\n"
	header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(lines))).ReadMIMEHeader()
	if err != nil || len(header) == 0 {
		return nil, hint.With(fmt.Errorf("%s holds no header lines", file), "a line is such as Authorization: Bearer TOKEN")
	}
	return http.Header(header), nil
}
