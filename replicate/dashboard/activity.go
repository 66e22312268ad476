package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"regedge/replicate/metering/writer"
)

// activityRows is how many rows of the audit log a page shows.
const activityRows = 50

// activity is a row of the audit log.
type activity struct{ writer.AuditEntry }

func activities(entries []writer.AuditEntry) []activity {
	list := make([]activity, len(entries))
	for i, e := range entries {
		list[i] = activity{e}
	}
	return list
}

type activityData struct {
	Rows     []activity
	Operator bool
	Query    string
	Before   string // the cursor of the next page, empty on the last one
}

// byOwnToken says that an entry was made with an owner's token: no other actor begins so.
const byOwnToken = `a.actor LIKE 'owner''s token %'`

// byOperator says that an entry was made by neither an owner nor a removed owner.
const byOperator = `u.id IS NULL AND a.actor <> '' AND NOT ` + byOwnToken + `
	AND a.actor NOT IN (SELECT actor FROM audit WHERE account = ?1 AND act = 'accept invitation')`

// An owner sees the entries of their own account, without the names and addresses of
// operators.
const selectOwnActivity = `SELECT a.id, a.at, CASE WHEN ` + byOperator + ` THEN 'the service' ELSE a.actor END,
	coalesce(a.account, 0), CASE WHEN ` + byOperator + ` THEN '' ELSE a.address END, a.act, a.detail
	FROM audit a LEFT JOIN user u ON u.email = a.actor AND u.account = a.account
	WHERE a.account = ?1 AND a.id < ?2 ORDER BY a.id DESC LIMIT ?3`

func (d *Dashboard) activityPage(v *visit) (answer, error) {
	query := v.r.URL.Query()
	data := activityData{Operator: v.user.Operator}
	if v.user.Operator {
		data.Query = strings.TrimSpace(printable(query.Get("q"), maxName))
		asked := writer.ListQuery{Search: data.Query, Limit: activityRows, Cursor: query.Get("before")}
		page, err := d.client.AuditPage(v.r.Context(), 0, asked)
		data.Rows, data.Before = activities(page.Data), page.Next
		return answer{page: "activity", title: "Activity", data: data}, listRefusal(err)
	}
	before := int64(1) << 62
	if asked := query.Get("before"); asked != "" {
		var err error
		if before, err = strconv.ParseInt(asked, 10, 64); err != nil {
			return answer{}, errMissing
		}
	}
	leave, err := d.turns.Enter(v.r.Context(), v.user.Account) // who is no owner is seen only by reading all entries
	if err != nil {
		return answer{}, err
	}
	defer leave()
	rows, err := d.readActivity(v.r.Context(), selectOwnActivity, v.user.Account, before, activityRows+1)
	if len(rows) > activityRows {
		rows = rows[:activityRows]
		data.Before = strconv.FormatInt(rows[activityRows-1].ID, 10)
	}
	data.Rows = rows
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

// acts describes requests to the writer's API, which the audit log holds as method and path. With named
// set, the part matched by * is appended.
var acts = []struct {
	request, words string
	named          bool
}{
	{"POST /v1/accounts", "create account", false},
	{"PATCH /v1/accounts/*", "change account", false},
	{"POST /v1/accounts/*/keys", "create key", false},
	{"POST /v1/account/keys", "create key", false},
	{"PATCH /v1/account/keys/*", "change key", true},
	{"POST /v1/account/keys/*/rotate", "rotate key", true},
	{"DELETE /v1/account/keys/*", "revoke key", true},
	{"POST /v1/accounts/*/tokens", "create API token", false},
	{"DELETE /v1/owner-tokens/*", "end API token", true},
	{"PATCH /v1/keys/*", "change key", true},
	{"POST /v1/keys/*/rotate", "rotate key", true},
	{"DELETE /v1/keys/*", "revoke key", true},
	{"POST /v1/accounts/*/credits", "change credits", false},
	{"PUT /v1/plans/*", "set plan", true},
	{"PATCH /v1/plans/*", "change plan", true},
	{"POST /v1/nodes", "add node", false},
	{"POST /v1/nodes/*/token", "give new token to node", true},
	{"PUT /v1/nodes/*/read-tokens", "pass read tokens on to node", true},
	{"POST /v1/nodes/*/retire", "retire node", true},
	{"POST /v1/invitations", "invite", false},
	{"POST /v1/tokens", "add operators' token", false},
	{"DELETE /v1/tokens/*", "end operators' token", true},
	{"POST /v1/unresolved/*/credit", "credit unresolved charge", true},
}

// Words describes an entry: requests to the API by the table above, everything else as it
// is stored.
func (a activity) Words() string {
	for _, known := range acts {
		if match, err := path.Match(known.request, a.Act); err != nil || !match {
			continue
		}
		if !known.named {
			return known.words
		}
		before, _, _ := strings.Cut(known.request, "*")
		name, _, _ := strings.Cut(strings.TrimPrefix(a.Act, before), "/")
		return known.words + " " + name
	}
	return a.Act
}

// Agent is the User-Agent of a sign-in, empty for other entries.
func (a activity) Agent() string {
	if a.Act == signInAct || a.Act == passwordAct {
		return a.Detail
	}
	return ""
}

// Particulars lists the non-empty members of the detail of a request to the API, or the detail itself if it is not a
// JSON object. For a sign-in it is the browser.
func (a activity) Particulars() string {
	if agent := a.Agent(); agent != "" {
		return browserName(agent)
	}
	if !strings.Contains(a.Act, " /") { // no request, and the detail may begin with a name such as {}
		return a.Detail
	}
	var members map[string]any
	decoder := json.NewDecoder(strings.NewReader(a.Detail))
	decoder.UseNumber()
	if decoder.Decode(&members) != nil {
		return a.Detail
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch value := members[name]; value {
		case nil, "", json.Number("0"), false:
		default:
			said = append(said, particular(name, value))
		}
	}
	return strings.Join(said, ", ")
}

// particular puts one member of the detail into words: life_seconds of 7776000 is a life of 90 days.
func particular(name string, value any) string {
	name, inSeconds := strings.CutSuffix(name, "_seconds")
	if seconds, err := strconv.ParseInt(fmt.Sprint(value), 10, 64); inSeconds && err == nil {
		value = inWords(seconds)
	}
	return fmt.Sprintf("%s: %v", strings.ReplaceAll(name, "_", " "), value)
}

// inWords formats seconds in the largest unit of which they are a whole number.
func inWords(seconds int64) string {
	n, unit := seconds, "second"
	for _, larger := range []struct {
		of   int64
		name string
	}{{60, "minute"}, {60, "hour"}, {24, "day"}} {
		if n%larger.of != 0 {
			break
		}
		n, unit = n/larger.of, larger.name
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
