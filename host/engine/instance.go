package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"regedge/handler"
	"regedge/host/engine/fuel"
)

// instance is one instance of the guest, with the state of its current request. It answers one
// request at a time.
//
// It is itself the context.Context of its calls, so that host functions get it from there.
type instance struct {
	engine *Engine

	module       api.Module
	memory       api.Memory
	handleFunc   api.Function
	reallocFunc  api.Function
	handleStack  [2]uint64
	reallocStack [4]uint64
	// reserved is guest memory for the results of each request. It is allocated in the pristine
	// state, so a lookup rarely calls the guest's allocator.
	reserved span
	// globals are the guest's mutable globals. steps is the one that limits its steps.
	globals []api.MutableGlobal
	steps   api.MutableGlobal

	// mayCall is set while calls of the host are allowed.
	mayCall bool
	exchange

	entropy        entropy
	statementTexts []string
	names          fieldNames
}

// newInstance instantiates the guest and runs its initialisation.
func (e *Engine) newInstance(ctx context.Context) (*instance, error) {
	module, err := e.runtime.InstantiateModule(ctx, e.compiled, e.moduleConfig)
	if err != nil {
		return nil, fmt.Errorf("instantiate guest: %w", err)
	}
	i := &instance{engine: e, module: module, memory: module.ExportedMemory(exportMemory)}
	i.handleFunc = module.ExportedFunction(exportHandle)
	i.reallocFunc = module.ExportedFunction(exportRealloc)
	i.steps = module.ExportedGlobal(fuel.ExportSteps).(api.MutableGlobal)
	for _, index := range e.mutable {
		i.globals = append(i.globals, module.ExportedGlobal(fuel.GlobalName(index)).(api.MutableGlobal))
	}
	if err := i.initialize(); err != nil {
		i.discard(ctx)
		return nil, fmt.Errorf("initialise guest: %w", err)
	}
	return i, nil
}

// initialize brings the guest to its pristine state. The guest cannot call the host meanwhile, so the
// state is always the same.
func (i *instance) initialize() error {
	return i.limited(func() error {
		if init := i.module.ExportedFunction(exportInitialize); init != nil {
			if err := init.CallWithStack(i, nil); err != nil {
				return err
			}
		}
		ptr, err := i.checkedRealloc(spareBytes, blockAlign)
		i.mayCall = false
		i.reserved = span{ptr, spareBytes}
		return err
	})
}

// serve answers one request. After an error the instance must be discarded.
func (i *instance) serve(ctx context.Context, req *handler.Request, resp *handler.Response) error {
	i.begin(ctx, i.engine.config.Timeout, i.reserved, req, resp)
	i.handleStack[0] = uint64(i.add(kindIncomingRequest, 0, noParent))
	i.handleStack[1] = uint64(i.add(kindResponseOutparam, 0, noParent))
	i.mayCall = true
	err := i.limited(func() error { return i.handleFunc.CallWithStack(i, i.handleStack[:]) })
	i.mayCall = false
	if err == nil {
		err = i.takeResponse()
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("%w: %w", ErrGuest, err), i.voidCharges(ctx))
		resp.Status, resp.Headers, resp.Body = 0, resp.Headers[:0], resp.Body[:0]
	}
	i.end()
	return err
}

// limited runs a call of the guest with the full number of steps.
func (i *instance) limited(call func() error) error {
	i.steps.Set(uint64(i.engine.config.StepLimit))
	err := call()
	if err != nil && int32(i.steps.Get()) < 0 {
		return errors.Join(ErrTimeLimit, err)
	}
	return err
}

// discard closes the instance.
func (i *instance) discard(ctx context.Context) {
	i.module.Close(context.WithoutCancel(ctx))
}

// Deadline implements context.Context. The context is never done: the step limit ends a call.
func (i *instance) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (i *instance) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (i *instance) Err() error { return nil }

// Value implements context.Context.
func (i *instance) Value(any) any { return nil }
