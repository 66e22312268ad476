package writer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
)

// selectAccounts takes the time as ?1, to tell which keys have expired.
const selectAccounts = `SELECT a.id, a.name, a.email, a.plan, a.suspended, a.created_at, a.bought, a.compensated,
	a.spent, a.lost, a.leased, a.deducting,
	(SELECT count(*) FROM api_key k WHERE k.account = a.id AND k.revoked_at IS NULL AND coalesce(k.expires_at > ?1, 1)) FROM account a`

func scanAccount(row interface{ Scan(...any) error }) (Account, error) {
	var a Account
	var created int64
	err := row.Scan(&a.ID, &a.Name, &a.Email, &a.Plan, &a.Suspended, &created, &a.Bought, &a.Compensated,
		&a.Spent, &a.Lost, &a.Leased, &a.Deducting, &a.Keys)
	a.Created = time.UnixMilli(created).UTC()
	a.Left = a.Bought + a.Compensated - a.Spent - a.Lost - a.Leased
	a.Balance = a.Left + a.Leased
	return a, err
}

// readAccountRow reads an account without its people.
func readAccountRow(ctx context.Context, db querier, nowMillis, id int64) (Account, error) {
	a, err := scanAccount(db.QueryRowContext(ctx, selectAccounts+` WHERE a.id = ?2`, nowMillis, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Account{}, notFound("account", id)
	}
	return a, err
}

// readAccountFrom reads an account with its people.
func readAccountFrom(ctx context.Context, db querier, nowMillis, id int64) (Account, error) {
	a, err := readAccountRow(ctx, db, nowMillis, id)
	if err != nil {
		return Account{}, err
	}
	accounts := []Account{a}
	err = addPeople(ctx, db, nowMillis, accounts)
	return accounts[0], err
}

// selectPeople finds the people of the accounts in a JSON array, and those with an open invitation.
const selectPeople = `
SELECT u.account, u.email, 0 FROM json_each(?1) wanted CROSS JOIN user u ON u.account = wanted.value
UNION ALL
SELECT i.account, i.email, 1 FROM json_each(?1) wanted CROSS JOIN invitation i ON i.account = wanted.value
	WHERE i.expires_at > ?2 AND i.expires_at <= ?3 AND NOT EXISTS (SELECT 1 FROM user u WHERE u.email = i.email)
ORDER BY 1, 2`

// addPeople fills in Owners and Invited.
func addPeople(ctx context.Context, db querier, nowMillis int64, accounts []Account) error {
	ids := make([]int64, len(accounts))
	at := make(map[int64]*Account, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		ids[i], at[a.ID] = a.ID, a
		a.Owners, a.Invited = []string{}, []string{}
	}
	wanted, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	_, err = collect(ctx, db, selectPeople, []any{string(wanted), nowMillis, nowMillis + longestInvitation.Milliseconds()}, func(rows *sql.Rows) (struct{}, error) {
		var account int64
		var email string
		var invited bool
		err := rows.Scan(&account, &email, &invited)
		if a := at[account]; err == nil && invited {
			a.Invited = append(a.Invited, email)
		} else if err == nil {
			a.Owners = append(a.Owners, email)
		}
		return struct{}{}, err
	})
	return err
}

// accountsPage selects accounts by name, number, or e-mail address: their own, or one that signs in for them.
const accountsPage = ` WHERE a.id > ?2 AND (?3 = '%%' OR a.name LIKE ?3 ESCAPE '\' OR a.email LIKE ?3 ESCAPE '\' OR a.id = ?4
	OR EXISTS (SELECT 1 FROM user u WHERE u.account = a.id AND u.email LIKE ?3 ESCAPE '\'))
	ORDER BY a.id LIMIT ?5`

func (w *Writer) listAccounts(r *http.Request, _ httprouter.Params) (any, error) {
	q, err := readListQuery(r)
	if err != nil {
		return nil, err
	}
	after, err := q.number(0)
	if err != nil {
		return nil, err
	}
	id, _ := strconv.ParseInt(q.Search, 10, 64) // 0, which no account has, when it is no number
	now := w.now()
	accounts, err := collect(r.Context(), w.config.Ledger, selectAccounts+accountsPage, []any{now, after, q.pattern(), id, q.more()},
		func(rows *sql.Rows) (Account, error) { return scanAccount(rows) })
	if err != nil {
		return nil, err
	}
	page := pageOf(q, accounts, func(a Account) string { return decimal(a.ID) })
	return page, addPeople(r.Context(), w.config.Ledger, now, page.Data)
}

func (w *Writer) readAccount(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	return readAccountFrom(r.Context(), w.config.Ledger, w.now(), id)
}

func (w *Writer) addAccount(r *http.Request, _ httprouter.Params) (any, error) {
	var body struct{ Name, Email, Plan string }
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if err := checkAccount(&body.Name, &body.Email); err != nil {
		return nil, err
	}
	var id int64
	change := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		if _, ok := l.Plan(body.Plan); !ok {
			return noPlan(body.Plan)
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO account (name, email, plan, suspended, created_at) VALUES (?, ?, ?, 0, ?)`,
			body.Name, body.Email, body.Plan, now)
		if err != nil {
			return err
		}
		if id, err = result.LastInsertId(); err != nil {
			return err
		}
		setActAccount(r, id)
		return l.AddAccount(id, body.Plan)
	}
	return apply(w, r, accountEdit(change, &id))
}

// accountEdit is a change of an account, or a new one, whose id is known when the change is made.
func accountEdit(change changeFunc, id *int64) edit[Account] {
	return edit[Account]{
		change: change,
		answer: func(ctx context.Context, tx *sql.Tx, now int64, _ *ledger.Ledger) (Account, error) {
			return readAccountFrom(ctx, tx, now, *id)
		},
		row: func(a Account) changedRow {
			return changedRow{table: accountTable, id: a.ID, takes: a.Suspended}
		},
	}
}

func (w *Writer) changeAccount(r *http.Request, p httprouter.Params) (any, error) {
	id, err := readID("account", p)
	if err != nil {
		return nil, err
	}
	var body AccountChange
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if err := checkAccount(body.Name, body.Email); err != nil {
		return nil, err
	}
	change := func(ctx context.Context, tx *sql.Tx, now int64, l *ledger.Ledger) error {
		a, err := readAccountRow(ctx, tx, now, id)
		if err != nil {
			return err
		}
		setIf(&a.Name, body.Name)
		setIf(&a.Email, body.Email)
		setIf(&a.Plan, body.Plan)
		if _, ok := l.Plan(a.Plan); !ok {
			return noPlan(a.Plan)
		}
		setIf(&a.Suspended, body.Suspended)
		if _, err := tx.ExecContext(ctx, `UPDATE account SET name = ?, email = ? WHERE id = ?`, a.Name, a.Email, id); err != nil {
			return err
		}
		return l.ChangeAccount(now, id, a.Plan, a.Suspended)
	}
	return apply(w, r, accountEdit(change, &id))
}

// checkAccount checks the name and e-mail address of an account; nil is not checked. Both lose the blanks around them.
func checkAccount(name, email *string) error {
	if name != nil {
		*name = strings.TrimSpace(*name)
		if err := checkName("an account's name", *name, true); err != nil {
			return err
		}
	}
	if email != nil {
		err := checkEmail(*email)
		*email = strings.TrimSpace(*email)
		return err
	}
	return nil
}

func noPlan(id string) error {
	return &detailed{ErrUnknownPlan, fmt.Sprintf("there is no plan %q", id)}
}

func setIf[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// planName is the form of a plan's id, which is used in paths and tables.
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
	change := func(_ context.Context, _ *sql.Tx, now int64, l *ledger.Ledger) error { return body.put(now, l) }
	return apply(w, r, planEdit(change, &body))
}

// changePlan changes the given fields of a plan.
func (w *Writer) changePlan(r *http.Request, p httprouter.Params) (any, error) {
	var body PlanChange
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	var answer Plan
	change := func(_ context.Context, _ *sql.Tx, now int64, l *ledger.Ledger) error {
		held, ok := l.Plan(p.ByName("name"))
		if !ok {
			return noPlan(p.ByName("name"))
		}
		answer = Plan{ID: held.ID, APIAccess: held.APIAccess, PerMinute: held.PerMinute, MonthlyVolume: held.MonthlyVolume,
			Email: held.Email, Phone: held.Phone}
		setIf(&answer.APIAccess, body.APIAccess)
		setIf(&answer.PerMinute, body.PerMinute)
		setIf(&answer.MonthlyVolume, body.MonthlyVolume)
		setIf(&answer.Email, body.Email)
		setIf(&answer.Phone, body.Phone)
		return answer.put(now, l)
	}
	return apply(w, r, planEdit(change, &answer))
}

// put makes or changes the plan in the ledger.
func (p *Plan) put(now int64, l *ledger.Ledger) error {
	if p.PerMinute < 0 || p.MonthlyVolume < 0 || p.APIAccess && p.PerMinute == 0 {
		return fmt.Errorf("%w: a plan with API access needs a rate above 0, and no number below", ErrMalformed)
	}
	l.SetPlan(now, ledger.Plan{ID: p.ID, APIAccess: p.APIAccess, PerMinute: p.PerMinute,
		MonthlyVolume: p.MonthlyVolume, Email: p.Email, Phone: p.Phone})
	return nil
}

// planEdit is a change of a plan, which sets the answer.
func planEdit(change changeFunc, answer *Plan) edit[Plan] {
	row := func(p Plan) changedRow { return changedRow{table: planTable, id: p.ID} }
	return edit[Plan]{change: change, answer: given(answer), row: row}
}
