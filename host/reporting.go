package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"regedge/handler"
	"regedge/replicate/metering/writer"
)

const (
	// reportInterval is how often an edge tells the writer how it is, at least.
	reportInterval = 2 * time.Second
	// lookInterval is how often one that is not ready looks whether it is, to tell at once.
	lookInterval = 100 * time.Millisecond
	// reportLimit bounds one report.
	reportLimit = 5 * time.Second
)

// reporting is the service that tells the writer how this node is. A report that does
// not arrive is no failure: the operator sees how old the last one is.
func (l *lookups) reporting(client *writer.Client, address string) service {
	return service{"report", func(ctx context.Context) error {
		var at time.Time // of the last report
		for {
			state, wait := l.state(), reportInterval
			if state != "" {
				wait = lookInterval
			}
			if state == "" || time.Since(at) >= reportInterval {
				at = time.Now()
				limited, cancel := context.WithTimeout(ctx, reportLimit)
				_ = client.Report(limited, l.report(limited, address, state))
				cancel()
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(wait):
			}
		}
	}}
}

// nodeAddress is where a node serves, in words for an operator: by the name of its machine
// when it listens on all of its addresses.
func nodeAddress(listening net.Addr) string {
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

// state is why this node is not ready, or empty.
func (l *lookups) state() string {
	if err := l.ready(); err != nil {
		return err.Error()
	}
	return ""
}

// report describes this node in a state.
func (l *lookups) report(ctx context.Context, address, state string) writer.Report {
	stats := l.meter.Stats()
	r := writer.Report{
		Address: address, Version: programVersion(), Ready: state, Refused: stats.Unavailable, Unsettled: stats.Unsettled,
	}
	var result handler.Result
	if err := l.registry.Query(ctx, releaseStatement, nil, &result); err == nil && result.Rows() > 0 {
		r.Release = result.Values[0].Text
	}
	for _, f := range l.follows() {
		replica := writer.Replica{Database: string(f.name), AgeMillis: -1, Fallback: f.Remote()}
		if age, known := f.Age(); known {
			replica.AgeMillis = age.Milliseconds()
		}
		r.Replicas = append(r.Replicas, replica)
	}
	return r
}

// reportClient speaks to the writer as this node.
func (f *metering) reportClient() (*writer.Client, error) {
	token, err := f.read()
	if err != nil {
		return nil, err
	}
	return writer.NewClient(f.Writer, token, &http.Client{Timeout: reportLimit}), nil
}
