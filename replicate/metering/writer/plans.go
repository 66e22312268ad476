package writer

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"regexp"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

// planName is what a plan may be called: it stands in paths and in tables.
var planName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

const selectPlans = `SELECT id, api_access, per_minute, monthly_volume, email, phone FROM plan`

func scanPlan(row interface{ Scan(...any) error }) (Plan, error) {
	var p Plan
	err := row.Scan(&p.ID, &p.APIAccess, &p.PerMinute, &p.MonthlyVolume, &p.Email, &p.Phone)
	return p, err
}

func (w *Writer) listPlans(r *http.Request, _ httprouter.Params) (any, error) {
	return collect(r.Context(), w.config.Ledger, selectPlans+` ORDER BY per_minute, id`, nil,
		func(rows *sql.Rows) (Plan, error) { return scanPlan(rows) })
}

func (w *Writer) setPlan(r *http.Request, p httprouter.Params) (any, error) {
	var body Plan
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if name := p.ByName("name"); body.ID == "" {
		body.ID = name
	} else if body.ID != name {
		return nil, fmt.Errorf("%w: the plan's id is not that of the path", ErrMalformed)
	}
	if !planName.MatchString(body.ID) {
		return nil, fmt.Errorf("%w: a plan's name has 1 to 63 characters of a-z, 0-9, '.', '_' and '-'", ErrMalformed)
	}
	if body.PerMinute < 0 || body.MonthlyVolume < 0 || body.APIAccess && body.PerMinute == 0 {
		return nil, fmt.Errorf("%w: a plan with API access needs a rate above 0, and no number below", ErrMalformed)
	}
	err := w.change(r, func(_ context.Context, _ *sql.Tx, now int64, l *ledger.Ledger) error {
		l.SetPlan(now, ledger.Plan{ID: body.ID, APIAccess: body.APIAccess, PerMinute: body.PerMinute,
			MonthlyVolume: body.MonthlyVolume, Email: body.Email, Phone: body.Phone})
		return nil
	}, func(ctx context.Context) error { return w.projectPlan(ctx, body.ID) })
	if err != nil {
		return nil, err
	}
	return body, nil
}
