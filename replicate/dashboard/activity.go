package dashboard

import (
	"context"
	"strconv"
	"time"
)

// activityRows is how many rows of the audit log a page shows.
const activityRows = 50

// activity is a row of the audit log.
type activity struct {
	ID      int64
	At      time.Time
	Actor   string
	Account int64
	Address string
	Act     string
	Detail  string
}

type activityData struct {
	Rows     []activity
	Operator bool
	Before   int64 // the oldest that is shown, 0 when there is none before it
}

// An owner sees what concerns their account. Who acted for the service, and from where,
// is not theirs to know; what was done is.
const selectOwnActivity = `SELECT a.id, a.at, CASE WHEN u.id IS NULL AND a.actor <> '' THEN 'the service' ELSE a.actor END,
	coalesce(a.account, 0), CASE WHEN u.id IS NULL AND a.actor <> '' THEN '' ELSE a.address END, a.act, a.detail
	FROM audit a LEFT JOIN user u ON u.email = a.actor AND u.account = a.account
	WHERE a.account = ?1 AND a.id < ?2 ORDER BY a.id DESC LIMIT ?3`

const selectActivity = `SELECT id, at, actor, coalesce(account, 0), address, act, detail FROM audit
	WHERE (?1 = 0 OR account = ?1) AND id < ?2 ORDER BY id DESC LIMIT ?3`

func (d *Dashboard) activityPage(v *visit) (answer, error) {
	before := int64(1) << 62
	if asked := v.r.URL.Query().Get("before"); asked != "" {
		var err error
		if before, err = strconv.ParseInt(asked, 10, 64); err != nil {
			return answer{}, errMissing
		}
	}
	query := selectOwnActivity
	if v.user.Operator {
		query = selectActivity
	}
	rows, err := d.readActivity(v.r.Context(), query, v.user.Account, before, activityRows)
	data := activityData{Rows: rows, Operator: v.user.Operator}
	if len(rows) == activityRows {
		data.Before = rows[len(rows)-1].ID
	}
	return answer{page: "activity", title: "Activity", data: data}, err
}

func (d *Dashboard) readActivity(ctx context.Context, query string, account, before int64, limit int) ([]activity, error) {
	rows, err := d.config.Ledger.QueryContext(ctx, query, account, before, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []activity
	for rows.Next() {
		var a activity
		var at int64
		if err := rows.Scan(&a.ID, &at, &a.Actor, &a.Account, &a.Address, &a.Act, &a.Detail); err != nil {
			return nil, err
		}
		a.At = time.UnixMilli(at).UTC()
		list = append(list, a)
	}
	return list, rows.Err()
}
