package dashboard

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"regedge/replicate/metering/writer"
)

// accountRows is how many accounts a page lists.
const accountRows = 50

// listed is an account in the list of all.
type listed struct {
	ID             int64
	Name, Plan     string
	Suspended      bool
	Keys           int
	Balance, Spent int64
}

type accountsData struct {
	Accounts []listed
	Query    string
	After    int64 // the last that is shown, 0 when there is none after it
	Plans    []writer.Plan
	Name     string
	Email    string
}

const selectListed = `SELECT a.id, a.name, a.plan, a.suspended, a.bought + a.compensated - a.spent - a.lost, a.spent,
	(SELECT count(*) FROM api_key k WHERE k.account = a.id AND k.revoked_at IS NULL) FROM account a
	WHERE a.id > ?1 AND (?2 = '' OR a.name LIKE ?3 ESCAPE '\' OR a.id = ?4
		OR EXISTS (SELECT 1 FROM user u WHERE u.account = a.id AND u.email LIKE ?3 ESCAPE '\'))
	ORDER BY a.id LIMIT ?5`

func (d *Dashboard) accountsPage(v *visit) (answer, error) { return d.accounts(v, "") }

func (d *Dashboard) accounts(v *visit, words string) (answer, error) {
	query := v.r.URL.Query()
	data := accountsData{Query: strings.TrimSpace(printable(query.Get("q"), maxName))}
	after, err := strconv.ParseInt(query.Get("after"), 10, 64)
	if err != nil && query.Has("after") {
		return answer{}, errMissing
	}
	if data.Accounts, err = d.listAccounts(v.r.Context(), after, data.Query); err != nil {
		return answer{}, err
	}
	if len(data.Accounts) == accountRows {
		data.After = data.Accounts[accountRows-1].ID
	}
	if data.Plans, err = d.client.Plans(v.r.Context()); err != nil {
		return answer{}, err
	}
	a := answer{page: "accounts", title: "Accounts", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, nil
}

func (d *Dashboard) listAccounts(ctx context.Context, after int64, query string) ([]listed, error) {
	id, _ := strconv.ParseInt(query, 10, 64) // 0, which no account has, when it is no number
	pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(query) + "%"
	rows, err := d.config.Ledger.QueryContext(ctx, selectListed, after, query, pattern, id, accountRows)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []listed
	for rows.Next() {
		var a listed
		if err := rows.Scan(&a.ID, &a.Name, &a.Plan, &a.Suspended, &a.Balance, &a.Spent, &a.Keys); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, rows.Err()
}

func (d *Dashboard) addAccount(v *visit) (answer, error) {
	name, plan := printable(v.line("name"), maxName), v.line("plan")
	if name == "" {
		return d.accounts(v, "The account needs a name.")
	}
	ctx := writer.WithAct(v.r.Context(), v.act("add account", 0, name+", plan "+plan))
	a, err := d.client.AddAccount(ctx, name, "", plan)
	if err != nil {
		return answer{}, planRefusal(err)
	}
	return see(accountPath(a.ID), "account"), nil
}

func accountPath(id int64) string { return "/accounts/" + strconv.FormatInt(id, 10) }
