package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"regedge/handler"
	"regedge/host/server"
)

// The errors of Answer.
var (
	// ErrGuest is wrapped by every failure of the guest: a trap, an exceeded limit, an
	// incomplete answer. The client gets 500 internal_error.
	ErrGuest = errors.New("guest failed")
	// ErrTimeLimit is wrapped beside ErrGuest if the guest took more steps than StepLimit or
	// waited longer than Timeout.
	ErrTimeLimit = errors.New("run-time limit exceeded")
	// ErrOverloaded is wrapped if the context ended before an instance was free. The client
	// gets 503 overloaded.
	ErrOverloaded = server.ErrOverloaded
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("engine is closed")
)

// The defaults of Config.
const (
	DefaultMaxInstances = 64
	DefaultMemoryLimit  = 16 << 20
	DefaultTimeout      = 5 * time.Second
	// DefaultStepLimit is thousands of times the steps of a lookup (about 1,000; a search takes
	// 5,000, an empty one with suggestions up to 80,000). A guest that uses it up has computed for
	// well under a second.
	DefaultStepLimit = 20_000_000
)

// pageSize is the unit of a guest's memory, in bytes.
const pageSize = 64 << 10

// Config describes the guest and what it has access to. Zero values mean the defaults above, if
// there is one.
type Config struct {
	// Component is the binary of the component.
	Component []byte
	// Databases are the databases that the guest may query, by label.
	Databases map[string]Database
	// Meter serves the guest's outgoing requests to the variable meter_url.
	Meter Meter
	// Variables are the variables that the guest may read, such as meter_url and meter_token.
	Variables map[string]string
	Clock     handler.Clock
	Random    handler.Random

	// MaxInstances is the maximum number of requests answered at once.
	MaxInstances int
	// MemoryLimit bounds each instance's memory, in bytes. It is rounded down to pages of
	// 64 KiB.
	MemoryLimit int
	// Timeout bounds how long one request waits for databases, meter and timers. It has to be
	// well over the second that a charge may take.
	Timeout time.Duration
	// StepLimit bounds how much one request computes, independent of the machine's load. A step
	// is a turn of a loop, a call of a function in the guest, or 16 bytes that one instruction
	// copies or fills.
	StepLimit int
	// Fresh makes a new instance for each request, as Spin does, instead of pooling them.
	Fresh bool
}

// Engine runs a component. It is safe for concurrent use.
type Engine struct {
	config       Config
	meterAddress meterAddress
	runtime      wazero.Runtime
	compiled     wazero.CompiledModule
	moduleConfig wazero.ModuleConfig
	// mutable holds the indices of the guest's mutable globals.
	mutable  []uint32
	snapshot *snapshot
	pool     pool
}

// New compiles the component and makes its first instance. Its error names everything that does
// not fit: each import that the engine does not have, each export that is missing.
func New(ctx context.Context, config Config) (*Engine, error) {
	e := &Engine{config: config.withDefaults()}
	if err := e.config.check(); err != nil {
		return nil, err
	}
	var err error
	if e.meterAddress, err = newMeterAddress(config.Variables); err != nil {
		return nil, err
	}
	e.pool.slots, e.pool.quit = make(chan struct{}, e.config.MaxInstances), make(chan struct{})
	if err := e.start(ctx); err != nil {
		e.Close(ctx)
		return nil, err
	}
	return e, nil
}

func (c Config) withDefaults() Config {
	if c.MaxInstances == 0 {
		c.MaxInstances = DefaultMaxInstances
	}
	if c.MemoryLimit == 0 {
		c.MemoryLimit = DefaultMemoryLimit
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.StepLimit == 0 {
		c.StepLimit = DefaultStepLimit
	}
	return c
}

func (c *Config) check() error {
	switch {
	case c.Meter == nil || c.Clock == nil || c.Random == nil:
		return errors.New("engine needs a meter, a clock and randomness")
	case c.MaxInstances < 1 || c.Timeout < 0:
		return errors.New("engine needs at least one instance and a positive time limit")
	case c.StepLimit < 0 || c.StepLimit > math.MaxInt32:
		return errors.New("step limit must be from 1 to 2147483647")
	case c.MemoryLimit < pageSize || c.MemoryLimit > 1<<30:
		return errors.New("memory limit must be from 64 KiB to 1 GiB")
	}
	return nil
}

// start compiles and links the guest, and takes a snapshot of its pristine state.
func (e *Engine) start(ctx context.Context) error {
	module, err := mainModule(e.config.Component, exportHandle, exportRealloc, exportMemory)
	if err != nil {
		return err
	}
	e.mutable = module.Mutable
	binary, err := module.Instrument()
	if err != nil {
		return err
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, runtimeConfig(e.config.MemoryLimit))
	if e.compiled, err = e.runtime.CompileModule(ctx, binary); err != nil {
		return fmt.Errorf("compile guest: %w", err)
	}
	functions := served()
	if err := checkLinks(e.compiled, functions); err != nil {
		return err
	}
	if err := serveImports(ctx, e.runtime, functions); err != nil {
		return err
	}
	e.moduleConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions()
	return e.prime(ctx)
}

// coreFeatures are the features that the guest's compiler is set to use (see package fuel).
const coreFeatures = api.CoreFeatureMutableGlobal | api.CoreFeatureSignExtensionOps |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureBulkMemoryOperations

func runtimeConfig(memoryLimit int) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().
		WithCoreFeatures(coreFeatures).
		WithMemoryLimitPages(uint32(memoryLimit / pageSize)).
		WithDebugInfoEnabled(false)
}

// prime makes the first instance, takes its snapshot and puts the instance into the pool.
func (e *Engine) prime(ctx context.Context) error {
	i, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	if !e.config.Fresh {
		e.snapshot, err = i.takeSnapshot()
	}
	e.release(ctx, i, err != nil)
	return err
}

// Answer runs the guest on req and fills resp, whose slices it reuses. On an error resp has no
// content and the request's charge has been voided; a failed void is part of the error.
// resp.Cause is the first error of a database, whose text the client is not sent.
func (e *Engine) Answer(ctx context.Context, req *handler.Request, resp *handler.Response) error {
	*resp = handler.Response{Headers: resp.Headers[:0], Body: resp.Body[:0]}
	i, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	err = i.serve(ctx, req, resp)
	e.release(ctx, i, err != nil)
	return err
}

// Stats returns the current counts of instances.
func (e *Engine) Stats() Stats {
	return Stats{e.pool.created.Load(), e.pool.discarded.Load(), len(e.pool.slots)}
}

// Close waits for the requests in flight and frees everything. It must be called once only.
func (e *Engine) Close(ctx context.Context) error {
	e.pool.close()
	if e.runtime == nil {
		return nil
	}
	return e.runtime.Close(ctx)
}
