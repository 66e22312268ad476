package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"regedge/host/hint"
	"regedge/replicate/metering/writer"
)

type planCommands struct {
	Add    planAdd    `cmd:"" help:"Make a plan."`
	List   planList   `cmd:"" help:"List the plans."`
	Change planChange `cmd:"" help:"Change a plan, for all its accounts."`
}

type planAdd struct {
	changing
	ID            string `arg:"" help:"Name of the plan."`
	PerMinute     int64  `env:"-" required:"" placeholder:"N" help:"Requests a minute."`
	MonthlyVolume int64  `env:"-" required:"" placeholder:"N" help:"Charged calls a month."`
	API           bool   `env:"-" default:"true" negatable:"" help:"Includes API access (${default})."`
	Email         bool   `env:"-" help:"Includes company e-mail addresses."`
	Phone         bool   `env:"-" help:"Includes company phone numbers."`
}

// Run makes a plan that does not exist yet. If the command is run again under its --idempotency-key, its
// first run may have made the plan; the writer then repeats its answer.
func (c *planAdd) Run(ctx context.Context, m *Main) error {
	plan := writer.Plan{
		ID: c.ID, APIAccess: c.API, PerMinute: c.PerMinute, MonthlyVolume: c.MonthlyVolume,
		Email: c.Email, Phone: c.Phone,
	}
	return change(ctx, m, &c.changing, "plan list", func(ctx context.Context, w *writer.Client) (writer.Plan, error) {
		held, found, err := findPlan(ctx, w, c.ID)
		again := c.IdempotencyKey != "" && held == plan
		if err != nil || found && !again {
			return writer.Plan{}, orElse(err, hint.With(fmt.Errorf("the plan %s is there already", c.ID),
				"change it with regedge plan change %s", c.ID))
		}
		return w.SetPlan(ctx, plan)
	}, planTable)
}

type planList struct{ operator }

// Run lists the plans.
func (c *planList) Run(ctx context.Context, m *Main) error {
	return show(m, &c.operator, func(w *writer.Client) ([]writer.Plan, error) {
		return w.Plans(ctx)
	}, plansTable)
}

type planChange struct {
	changing
	ID            string `arg:"" help:"Name of the plan."`
	PerMinute     *int64 `env:"-" placeholder:"N" help:"Requests a minute."`
	MonthlyVolume *int64 `env:"-" placeholder:"N" help:"Charged calls a month."`
	API           *bool  `env:"-" negatable:"" help:"Includes API access."`
	Email         *bool  `env:"-" negatable:"" help:"Includes company e-mail addresses."`
	Phone         *bool  `env:"-" negatable:"" help:"Includes company phone numbers."`
}

// Validate refuses a change of nothing.
func (c *planChange) Validate() error {
	if c.PerMinute == nil && c.MonthlyVolume == nil && c.API == nil && c.Email == nil && c.Phone == nil {
		return errors.New("--per-minute, --monthly-volume, --api, --email or --phone says what changes")
	}
	return nil
}

// Run changes the given fields of an existing plan.
func (c *planChange) Run(ctx context.Context, m *Main) error {
	return change(ctx, m, &c.changing, "plan list", func(ctx context.Context, w *writer.Client) (writer.Plan, error) {
		return w.ChangePlan(ctx, c.ID, writer.PlanChange{
			APIAccess: c.API, PerMinute: c.PerMinute, MonthlyVolume: c.MonthlyVolume, Email: c.Email, Phone: c.Phone,
		})
	}, planTable)
}

// orElse returns err, or other when err is nil.
func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func findPlan(ctx context.Context, w *writer.Client, id string) (writer.Plan, bool, error) {
	plans, err := w.Plans(ctx)
	for _, p := range plans {
		if p.ID == id {
			return p, true, nil
		}
	}
	return writer.Plan{}, false, err
}

func planTable(table *tabwriter.Writer, p writer.Plan) { plansTable(table, []writer.Plan{p}) }

func plansTable(table *tabwriter.Writer, plans []writer.Plan) {
	row(table, "PLAN", "API", "PER MINUTE", "MONTHLY VOLUME", "E-MAIL", "PHONE")
	for _, p := range plans {
		row(table, p.ID, word(p.APIAccess, "yes", "no"), p.PerMinute, p.MonthlyVolume,
			word(p.Email, "yes", "no"), word(p.Phone, "yes", "no"))
	}
}
