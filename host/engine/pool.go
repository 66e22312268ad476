package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// pool has the idle instances. The one used last is used next, since its memory is still in the
// processor's caches.
type pool struct {
	// slots has one token for each instance in use; its capacity is MaxInstances.
	slots chan struct{}
	// quit is closed with the engine.
	quit chan struct{}

	mu     sync.Mutex
	idle   []*instance
	closed bool

	created, discarded atomic.Int64
}

// Stats counts instances since the engine was made.
type Stats struct {
	// Created and Discarded count the instances that were made and discarded. The difference is
	// the number of instances in use and idle.
	Created, Discarded int64
	// Busy is the number of instances in use now.
	Busy int
}

// acquire returns an instance in its pristine state. It waits while MaxInstances are in use, and fails
// with ErrOverloaded if ctx ends first, or with ErrClosed.
func (e *Engine) acquire(ctx context.Context) (*instance, error) {
	select {
	case e.pool.slots <- struct{}{}:
	default:
		select {
		case e.pool.slots <- struct{}{}:
		case <-e.pool.quit:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrOverloaded, ctx.Err())
		}
	}
	i, err := e.take(ctx)
	if err != nil {
		<-e.pool.slots
	}
	return i, err
}

func (e *Engine) take(ctx context.Context) (*instance, error) {
	i, closed := e.pool.pop()
	switch {
	case closed:
		return nil, ErrClosed
	case i != nil:
		return i, nil
	}
	return e.create(ctx)
}

// create makes an instance and checks that it is in the pristine state.
func (e *Engine) create(ctx context.Context) (*instance, error) {
	i, err := e.newInstance(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	e.pool.created.Add(1)
	if e.snapshot != nil && !e.snapshot.matches(i) {
		e.drop(ctx, i)
		return nil, fmt.Errorf("%w: initialisation led to a different state than before", ErrGuest)
	}
	return i, nil
}

// release returns an instance to the pool in its pristine state. It discards the instance if its
// request failed, if it cannot be restored, or with Config.Fresh.
func (e *Engine) release(ctx context.Context, i *instance, failed bool) {
	if failed || e.config.Fresh || e.snapshot.restore(i) != nil || !e.pool.push(i) {
		e.drop(ctx, i)
	}
	<-e.pool.slots
}

func (e *Engine) drop(ctx context.Context, i *instance) {
	i.discard(ctx)
	e.pool.discarded.Add(1)
}

func (p *pool) pop() (i *instance, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 && !p.closed {
		i = p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
	}
	return i, p.closed
}

// push returns false if the pool is closed.
func (p *pool) push(i *instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.idle = append(p.idle, i)
	}
	return !p.closed
}

// close makes waiting requests fail, and waits for the instances in use.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	close(p.quit)
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
}
