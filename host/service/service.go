// Package service starts and stops the long-running parts of a process: services that
// depend on one another, what they opened, and the small HTTP servers of APIs and metrics.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Service runs until its context is done and then returns nil. An earlier return ends the
// process.
type Service struct {
	Name string
	Run  func(context.Context) error
}

// Run runs services, each of which may depend on those before it. It stops them all when
// ctx is done or when one of them returns: in reverse order, waiting for each before it
// stops the next, so that a service never outlives what it depends on. It returns the
// errors of all services, joined and prefixed with their names. The init system hears of the start
// and the stop, if it asks.
func Run(ctx context.Context, services ...Service) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cancels := make([]context.CancelFunc, len(services))
	results := make([]chan error, len(services))
	for i, s := range services {
		var own context.Context
		own, cancels[i] = context.WithCancel(context.WithoutCancel(ctx))
		results[i] = make(chan error, 1)
		go func() {
			err := s.Run(own)
			if err != nil {
				err = fmt.Errorf("%s: %w", s.Name, err)
			}
			results[i] <- err
			stop()
		}()
	}
	untilDone(ctx)
	var failed []error
	for i := len(services) - 1; i >= 0; i-- {
		cancels[i]()
		failed = append(failed, <-results[i])
	}
	return errors.Join(failed...)
}

// untilDone waits for the end of ctx. It tells the init system that the services run, that they still
// do, and that they are being stopped.
func untilDone(ctx context.Context) {
	tellInit(daemon.SdNotifyReady)
	defer tellInit(daemon.SdNotifyStopping)
	due, stop := watchdog()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
			tellInit(daemon.SdNotifyWatchdog)
		}
	}
}

// Closers closes what a command has opened, in reverse order.
type Closers []func() error

// Add registers a close function.
func (c *Closers) Add(closer func() error) { *c = append(*c, closer) }

// Close calls every registered function and returns their errors, joined.
func (c *Closers) Close() error {
	var failed []error
	for i := len(*c) - 1; i >= 0; i-- {
		failed = append(failed, (*c)[i]())
	}
	return errors.Join(failed...)
}

// IgnoreClosed returns a close function for something that another part may already have
// closed: that is no error.
func IgnoreClosed(c io.Closer) func() error {
	return func() error {
		err := c.Close()
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		return err
	}
}
