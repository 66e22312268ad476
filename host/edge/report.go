package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/handler"
	"regedge/host/service"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
)

const (
	// reportInterval is how often a node reports to the writer, at least.
	reportInterval = 2 * time.Second
	// recheckInterval is how often a node that is not ready checks again, to report at once
	// when it is.
	recheckInterval = 100 * time.Millisecond
	// reportTimeout bounds one report.
	reportTimeout = 5 * time.Second
	// lastRequestsTimeout bounds the sending of the last requests' log, for which a stop waits.
	lastRequestsTimeout = time.Second
)

// Reporter is how a node sends reports.
type Reporter struct {
	// Client authenticates as the node. Its requests should be bounded: see NewClient.
	Client *writer.Client
	// Address is where the node serves, as operators see it.
	Address string
	// Renew is called with a new token for a replica; it must be set if the writer sends any.
	Renew func(database, token string)
	// Version, Commit and Component say which program this is, as in [writer.Report].
	Version, Commit, Component string
}

// NewClient returns a client for Reporter, with a deadline for each request.
func NewClient(writerURL, token string) *writer.Client {
	return writer.NewClient(writerURL, token, &http.Client{Timeout: reportTimeout, Transport: ToWriter}).ForNode()
}

// Report returns the service that tells the writer the state of this node. A report that
// does not arrive is no failure: operators see how old the last one is.
func (n *Node) Report(r Reporter) service.Service {
	return service.Service{Name: "report", Run: func(ctx context.Context) error {
		var reported time.Time
		arrived := false // the last report
		for {
			failure, wait := n.failure(), reportInterval
			if failure != "" {
				wait = recheckInterval
			}
			if failure == "" || time.Since(reported) >= reportInterval {
				reported = time.Now()
				limited, cancel := context.WithTimeout(ctx, reportTimeout)
				answer, err := r.Client.Report(limited, n.report(limited, r, failure))
				n.noteToken(err)
				for database, token := range answer.ReadTokens {
					r.Renew(database, token)
				}
				cancel()
				if ctx.Err() == nil { // else the stop cut it off, which says nothing of the writer
					arrived = err == nil
				}
				if arrived {
					n.sendRequests(ctx, r.Client)
				}
			}
			select {
			case <-ctx.Done(): // the lookups have stopped before
				if arrived {
					n.sendRequests(ctx, r.Client)
				}
				return nil
			case <-time.After(wait):
			}
		}
	}}
}

// sendRequests sends the log of requests, also when ctx has ended, within lastRequestsTimeout.
func (n *Node) sendRequests(ctx context.Context, to *writer.Client) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastRequestsTimeout, cancel) })()
	n.requests.send(last, to)
}

// noteToken records from a report's result whether the writer refuses this node's token, and logs a
// change. A network error says nothing about the token.
func (n *Node) noteToken(err error) {
	switch refused := errors.Is(err, writer.ErrUnauthorized); {
	case refused && !n.refused.Swap(true):
		n.config.Log.Error("the writer refuses this node's token: regedge node token makes a new one", "error", err)
	case err == nil && n.refused.Swap(false):
		n.config.Log.Info("the writer accepts this node's token")
	}
}

// meterReady is nil when live keys can be served, else why not.
func (n *Node) meterReady() error {
	err := n.config.Meter.Ready()
	if err != nil && n.refused.Load() {
		if errors.Is(err, meter.ErrNoEpoch) { // the writer was reached
			return errRefused
		}
		return fmt.Errorf("%w; %w", err, errRefused)
	}
	return err
}

var errRefused = errors.New("the writer refuses this node's token: live keys can't be served")

// failure is why this node is not ready, or "".
func (n *Node) failure() string {
	if err := n.Ready(); err != nil {
		return err.Error()
	}
	return ""
}

// release is the release that lookups are answered from, "" if there is none or it can't be read.
func (n *Node) release(ctx context.Context) string {
	var result handler.Result
	if err := n.config.Registry.Query(ctx, releaseStatement, nil, &result); err != nil || result.Rows() == 0 {
		return ""
	}
	return result.Values[0].Text
}

// releaseMetric shows the release that lookups are answered from. Without one there is no series.
type releaseMetric struct{ n *Node }

var releaseDesc = prometheus.NewDesc("regedge_registry_release", "1 while lookups are answered from this release of the registry.", []string{"release"}, nil)

// Describe names the metric.
func (r releaseMetric) Describe(to chan<- *prometheus.Desc) { to <- releaseDesc }

// Collect reads the release from the registry.
func (r releaseMetric) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if release := r.n.release(ctx); release != "" {
		to <- prometheus.MustNewConstMetric(releaseDesc, prometheus.GaugeValue, 1, release)
	}
}

// report describes this node; failure is why it is not ready, or "".
func (n *Node) report(ctx context.Context, r Reporter, failure string) writer.Report {
	stats := n.config.Meter.Stats()
	report := writer.Report{
		Address: r.Address, Version: r.Version, Commit: r.Commit, Component: r.Component,
		Ready: failure, Refused: stats.Unavailable, Unsettled: stats.Unsettled,
	}
	report.Release = n.release(ctx)
	for _, replica := range n.replicas() {
		shown := writer.Replica{Database: string(replica.name), AgeMillis: -1, Fallback: replica.Remote()}
		if age, known := replica.Age(); known {
			shown.AgeMillis = age.Milliseconds()
		}
		report.Replicas = append(report.Replicas, shown)
	}
	return report
}

// Address returns where a node serves, for operators: with the machine's name when it
// listens on all of its addresses.
func Address(listening net.Addr) string {
	tcp, ok := listening.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return listening.String()
	}
	name, err := os.Hostname()
	if err != nil {
		return listening.String()
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}
