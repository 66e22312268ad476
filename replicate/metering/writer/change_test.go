package writer_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// openLedger opens the ledger of the writer in dir a second time, to query it.
func openLedger(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// TestTheAuditLogSaysHowManyCreditsWereTaken, where the request asks for what there is.
func TestTheAuditLogSaysHowManyCreditsWereTaken(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 100})
	require.NoError(t, err)
	for range 2 { // the second takes nothing
		a, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: -500, Note: "closed", AtMost: true})
		require.NoError(t, err)
		require.Zero(t, a.Balance)
	}
	db := openLedger(t, dir)
	require.Equal(t, 2, count(t, db, `SELECT count(*) FROM audit WHERE act LIKE '%/credits'`))
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM audit WHERE detail = '{"amount":-100,"kind":"bought","note":"closed","at_most":true}'`))
}

func TestEveryChangeThroughTheAPIIsAudited(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	db := openLedger(t, dir)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 7, Note: "gift"})
	require.NoError(t, err)
	_, err = client.Accounts(t.Context())
	require.NoError(t, err)
	key, err := client.AddKey(t.Context(), a.ID, "")
	require.NoError(t, err)
	_, err = client.RevokeKey(t.Context(), key.ID)
	require.NoError(t, err)
	_, err = client.Invite(t.Context(), "o@example.com", a.ID)
	require.NoError(t, err)
	_, err = client.ChangeAccount(t.Context(), 99, writer.AccountChange{})
	require.ErrorIs(t, err, writer.ErrNotFound)

	rows, err := db.Query(`SELECT actor, coalesce(account, 0), act, detail FROM audit ORDER BY id`)
	require.NoError(t, err)
	defer rows.Close()
	var got [][4]any
	for rows.Next() {
		var r [4]any
		require.NoError(t, rows.Scan(&r[0], &r[1], &r[2], &r[3]))
		got = append(got, r)
	}
	require.Equal(t, [][4]any{
		{"operators' token", int64(1), "POST /v1/accounts", `{"email":"","name":"made-up","plan":"starter"}`},
		{"operators' token", a.ID, "POST /v1/accounts/1/credits", `{"amount":7,"kind":"","note":"gift"}`},
		{"operators' token", a.ID, "POST /v1/accounts/1/keys", `{"name":""}`},
		{"operators' token", a.ID, "DELETE /v1/keys/1", ""},
		{"operators' token", a.ID, "POST /v1/invitations", `{"account":1,"email":"o@example.com","operator":false,"reset_two_factor":false}`},
	}, got, "reads and failed changes are not entered")
}

func TestAnActInTheContextIsAudited(t *testing.T) {
	dir := t.TempDir()
	client, _, w := start(t, dir)
	db := openLedger(t, dir)
	ctx := writer.WithAct(t.Context(), writer.Act{Actor: "o@example.com", Account: 1, Address: "192.0.2.1", Name: "add account", Detail: "plan starter"})
	_, err := client.AddAccount(ctx, "made-up", "", "starter")
	require.NoError(t, err)
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM audit WHERE actor = 'o@example.com' AND account = 1
		AND address = '192.0.2.1' AND act = 'add account' AND detail = 'plan starter'`))

	undone := errors.New("undone")
	err = w.Commit(t.Context(), writer.Act{Name: "never"}, func(ctx context.Context, tx *sql.Tx, _ int64) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO attempt (subject, since, count) VALUES ('x', 0, 1)`)
		return errors.Join(err, undone)
	})
	require.ErrorIs(t, err, undone)
	require.Zero(t, count(t, db, `SELECT count(*) FROM attempt`))
	require.Zero(t, count(t, db, `SELECT count(*) FROM audit WHERE act = 'never'`))
}

func TestTheAuditLogIsAppendOnly(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	db := openLedger(t, dir)
	_, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE audit SET act = 'nothing'`)
	require.ErrorContains(t, err, "never changed")
	_, err = db.Exec(`DELETE FROM audit`)
	require.ErrorContains(t, err, "never cut")
}

func TestASecondInvitationReplacesTheFirstAndNeitherIsStored(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	db := openLedger(t, dir)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	first, err := client.Invite(t.Context(), " Owner@Example.com ", a.ID)
	require.NoError(t, err)
	require.Equal(t, "owner@example.com", first.Email)
	second, err := client.Invite(t.Context(), "owner@example.com", a.ID)
	require.NoError(t, err)
	require.NotEqual(t, first.Token, second.Token)
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM invitation`), "the second replaces the first")
	require.Zero(t, count(t, db, `SELECT count(*) FROM invitation WHERE instr(hash, ?) > 0`, second.Token))
	require.Zero(t, count(t, db, `SELECT count(*) FROM audit WHERE instr(detail, ?) > 0`, second.Token))

	_, err = client.Invite(t.Context(), "owner@example.com", 99)
	require.ErrorIs(t, err, writer.ErrNotFound)
	for _, email := range []string{"", "owner", "a@b@c", "a b@example.com", "a@example.com\r\nBcc: x@example.com", "A <a@example.com>"} {
		_, err = client.Invite(t.Context(), email, a.ID)
		require.ErrorIs(t, err, writer.ErrMalformed, email)
	}
	_, err = db.Exec(`INSERT INTO user (email, password, account, operator, created_at) VALUES ('taken@example.com', '', ?, 0, 0)`, a.ID)
	require.NoError(t, err)
	_, err = client.Invite(t.Context(), "taken@example.com", 0)
	require.ErrorIs(t, err, writer.ErrTaken)
	_, err = client.Invite(t.Context(), "taken@example.com", a.ID)
	require.NoError(t, err, "for a new password")
}

// TestInvitationsThatEndedAreDropped with the next one: nobody can accept them any more.
func TestInvitationsThatEndedAreDropped(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	db := openLedger(t, dir)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	for _, name := range []string{"ann", "bob"} {
		_, err = client.Invite(t.Context(), name+"@example.com", a.ID)
		require.NoError(t, err)
	}
	require.Equal(t, 2, count(t, db, `SELECT count(*) FROM invitation`))
	_, err = db.Exec(`UPDATE invitation SET expires_at = 1 WHERE email = 'ann@example.com'`)
	require.NoError(t, err)
	_, err = client.Invite(t.Context(), "cleo@example.com", a.ID)
	require.NoError(t, err)
	require.Zero(t, count(t, db, `SELECT count(*) FROM invitation WHERE email = 'ann@example.com'`))
	require.Equal(t, 2, count(t, db, `SELECT count(*) FROM invitation`))
}

func FuzzCanonicalEmail(f *testing.F) {
	for _, seed := range []string{"a@example.com", " A@B ", "a@b\r\nX: y", "\"a b\"@c", "a@[1.2.3.4]", "ü@é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		email := writer.CanonicalEmail(text)
		require.Equal(t, email, writer.CanonicalEmail(email))
		require.NotContains(t, email, "\n")
		require.NotContains(t, email, "\r")
		require.LessOrEqual(t, len(email), 254)
	})
}

// TestAChangeThatWasRefusedIsNotMadeLater locks the ledger, so that changes wait, until their callers
// give up. Only the one whose commit had begun may still be made.
func TestAChangeThatWasRefusedIsNotMadeLater(t *testing.T) {
	dir := t.TempDir()
	client, _, _ := start(t, dir)
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	lock, err := openLedger(t, dir).Conn(t.Context())
	require.NoError(t, err)
	defer lock.Close()
	_, err = lock.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	require.NoError(t, err)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := client.ChangeCredits(ctx, a.ID, writer.CreditChange{Amount: 1})
			assert.Error(t, err)
		})
	}
	calls.Wait()
	_, err = lock.ExecContext(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	a, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 100})
	require.NoError(t, err)
	require.LessOrEqual(t, a.Bought, int64(101))
}

// TestChangesOfAPlanKeepEachOther: each names its own fields. One that is repeated after the other is made once.
func TestChangesOfAPlanKeepEachOther(t *testing.T) {
	client, _, _ := start(t, t.TempDir())
	rate, most, yes, none := int64(7), int64(70), true, int64(0)
	first := writer.WithIdempotencyKey(t.Context(), "the-first-change")
	plan, err := client.ChangePlan(first, "starter", writer.PlanChange{PerMinute: &rate})
	require.NoError(t, err)
	require.Equal(t, writer.Plan{ID: "starter", APIAccess: true, PerMinute: 7, MonthlyVolume: 10_000}, plan)
	plan, err = client.ChangePlan(t.Context(), "starter", writer.PlanChange{MonthlyVolume: &most, Email: &yes, Phone: &yes})
	require.NoError(t, err)
	want := writer.Plan{ID: "starter", APIAccess: true, PerMinute: 7, MonthlyVolume: 70, Email: true, Phone: true}
	require.Equal(t, want, plan)
	_, err = client.ChangePlan(first, "starter", writer.PlanChange{PerMinute: &rate})
	require.NoError(t, err)
	plans, err := client.Plans(t.Context())
	require.NoError(t, err)
	require.Contains(t, plans, want)
	_, err = client.ChangePlan(t.Context(), "starter", writer.PlanChange{PerMinute: &none})
	require.ErrorIs(t, err, writer.ErrMalformed, "it includes API access")
	_, err = client.ChangePlan(t.Context(), "none", writer.PlanChange{PerMinute: &rate})
	require.ErrorIs(t, err, writer.ErrUnknownPlan)
}
