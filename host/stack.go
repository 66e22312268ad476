package main

import (
	"context"
	"errors"
	"fmt"
)

// service is something that runs until its context is done and then returns nil.
type service struct {
	name string
	run  func(context.Context) error
}

// runStack runs services that stand on one another. It ends when ctx is done or one of
// them ends. The last one is asked to stop first and waited for, then the one before it,
// so that each has what it stands on until its own end. The error is theirs, joined.
func runStack(ctx context.Context, services ...service) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cancels := make([]context.CancelFunc, len(services))
	results := make([]chan error, len(services))
	for i, s := range services {
		var own context.Context
		own, cancels[i] = context.WithCancel(context.WithoutCancel(ctx))
		results[i] = make(chan error, 1)
		go func() {
			err := s.run(own)
			if err != nil {
				err = fmt.Errorf("%s: %w", s.name, err)
			}
			results[i] <- err
			stop()
		}()
	}
	<-ctx.Done()
	var failed []error
	for i := len(services) - 1; i >= 0; i-- {
		cancels[i]()
		failed = append(failed, <-results[i])
	}
	return errors.Join(failed...)
}
