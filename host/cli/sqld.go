package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/hint"
	"regedge/host/pki"
	"regedge/host/server"
	"regedge/host/service"
	"regedge/replicate/disk"
	"regedge/replicate/registry/sqld"
)

// sqldFlags are the flags of both commands that run sqld.
type sqldFlags struct {
	CA      string `name:"tls-ca" type:"existingfile" env:"-" placeholder:"FILE" help:"Authority that primary and replicas trust."`
	Cert    string `name:"tls-cert" type:"existingfile" env:"-" placeholder:"FILE" help:"Certificate of this machine; regedge trust machine makes it."`
	Key     string `name:"tls-key" type:"existingfile" env:"-" placeholder:"FILE" help:"Its key."`
	Metrics string `placeholder:"ADDR" help:"Address of the Prometheus metrics, which say when the certificates end; none by default."`
	Pprof   bool   `help:"Serve Go's profiles of this process, not of sqld, at /debug/pprof/ of --metrics."`
	Sqld    string `default:"sqld" env:"-" placeholder:"PROGRAM" help:"The libSQL server (${default})."`
}

// check refuses profiles without an address.
func (f *sqldFlags) check() error { return (&metricsFlags{f.Metrics, f.Pprof}).check() }

// program finds sqld. It checks that this process can read the files, since sqld's own error does not
// name them, and that it can read no signing key beside them.
func (f *sqldFlags) program(jwtKey string) (string, error) {
	if err := refuseSigningKeys(jwtKey, f.CA, f.Cert, f.Key); err != nil {
		return "", err
	}
	program, err := exec.LookPath(f.Sqld)
	if err != nil {
		return "", hint.With(fmt.Errorf("no libSQL server: %w", err), "install sqld on the PATH, or say where it is with --sqld")
	}
	for _, file := range []string{jwtKey, f.CA, f.Cert, f.Key} {
		if err := readable(file); err != nil {
			return "", err
		}
	}
	return program, nil
}

// tls are the files of replication, nil without flags.
func (f *sqldFlags) tls() *sqld.TLSFiles {
	if f.CA == "" {
		return nil
	}
	return &sqld.TLSFiles{CA: f.CA, Cert: f.Cert, Key: f.Key}
}

// newLink makes the certificate by which sqld and this process recognise each other, in a folder of its directory.
func newLink(dir, folder string) (*sqld.TLSFiles, error) {
	link := new(sqld.TLSFiles)
	var err error
	if link.CA, link.Cert, link.Key, err = pki.Link(filepath.Join(dir, folder)); err != nil {
		return nil, unwritable(err, dir)
	}
	return link, nil
}

// unwritable adds a hint to an error about a file that could not be written to in a service's directory.
func unwritable(err error, dir string) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return hint.With(err, "make room on the disk of %s: for bytes (df) or for files (df -i)", dir)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		return hint.With(err, "the disk of %s can't be written to: dmesg says why, if it was not meant", dir)
	}
	return hint.With(err, "let the user that this runs as write to %s", dir)
}

// run runs sqld until ctx is done, and serves metrics, if enabled. They show when the certificates expire,
// as read at the start.
func (f *sqldFlags) run(ctx context.Context, m *Main, name string, config sqld.Config) (err error) {
	var closers service.Closers
	defer func() { err = errors.Join(err, closers.Close()) }()
	config.Log = m.passedOn(&closers)
	config.Traffic = new(sqld.Traffic)
	log := newLog(config.Log, slog.LevelInfo, false)
	config.Bound = func(l net.Listener) net.Listener { return server.Bound(l, log) }
	services := []service.Service{{Name: name, Run: (&sqld.Server{Config: config}).Run}}
	listener, err := m.listenForMetrics(f.Metrics, &closers)
	if err != nil {
		return err
	}
	if listener != nil {
		at, err := f.certificateEnds()
		if err != nil {
			return err
		}
		registry := newMetrics()
		registry.MustRegister(&ends{certificateDesc, m.Now, func() map[string]time.Time { return at }},
			disk.Metrics(disk.Kept{Directories: map[string]string{"database": config.Dir}, Files: sqld.Files(config.Dir)}))
		registry.MustRegister(traffic(config.Traffic)...)
		services = append(services, service.Metrics(listener, registry, f.Pprof, log))
	}
	if err = service.Run(ctx, services...); errors.Is(err, syscall.EADDRINUSE) {
		err = hint.With(err, "is regedge running already, or does another program have that address (ss -ltnp)?")
	}
	return err
}

// traffic shows what a primary and its replicas send and receive.
func traffic(t *sqld.Traffic) []prometheus.Collector {
	counter := func(name, help string, count *atomic.Int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(count.Load()) })
	}
	return []prometheus.Collector{
		counter("regedge_replication_sent_bytes_total", "Sent in replication, as on the wire: at a primary what its replicas copy.", &t.Sent),
		counter("regedge_replication_received_bytes_total", "Received in replication, as on the wire: at a replica what it copies from its primary or a mirror.", &t.Received),
	}
}

// certificateEnds returns when the certificates of replication expire, by file name.
func (f *sqldFlags) certificateEnds() (map[string]time.Time, error) {
	at := map[string]time.Time{}
	for _, file := range []string{f.CA, f.Cert} {
		if file == "" {
			continue
		}
		end, err := pki.CertificateEnd(file)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		if other, known := at[name]; !known || end.Before(other) { // both may have one name, in two directories
			at[name] = end
		}
	}
	return at, nil
}

// readable returns an error for a file that can't be read; no file is fine.
func readable(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return hint.With(err, "let the user that this runs as read it")
	}
	return file.Close()
}
