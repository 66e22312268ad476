package cli

import (
	"context"
	"errors"
	"time"

	"regedge/host/doctor"
	"regedge/host/hint"
)

type probeCommand struct {
	Listen  string        `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address that the service was told to listen on (${default})."`
	TLSCert string        `type:"path" placeholder:"FILE" help:"The service's certificate, if it has one: it is asked with TLS then."`
	Path    string        `env:"-" default:"/readyz" help:"What to ask (${default})."`
	Timeout time.Duration `env:"-" default:"3s" help:"How long an answer may take (${default})."`
}

// Help is the text below the usage.
func (c *probeCommand) Help() string {
	return `Asks a service of this machine whether it is ready, for the health checks of containers. It exits
with 1 when it is not, and says why. It takes its address from the variables of the service.`
}

// Validate refuses a timeout that is not positive.
func (c *probeCommand) Validate() error {
	if c.Timeout <= 0 {
		return errors.New("--timeout must be positive")
	}
	return nil
}

// Run asks once.
func (c *probeCommand) Run(ctx context.Context, m *Main) error {
	e := &doctor.Exam{Now: m.Now, Timeout: c.Timeout}
	if e.Ready(ctx, "service", c.Listen, c.Path, c.TLSCert != "") {
		return nil
	}
	f := e.Findings[0]
	return hint.With(errors.New(f.Found), "%s", f.Do)
}
