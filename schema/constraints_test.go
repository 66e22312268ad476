package schema

import (
	"context"
	"database/sql"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDatabasesRefuseWhatCannotBe: a mistake of the program ends a transaction there, before it is money.
func TestDatabasesRefuseWhatCannotBe(t *testing.T) {
	const ledger = `
		INSERT INTO account (id, name, email, plan, suspended, created_at, bought) VALUES (1, 'made-up', '', 'scale', 0, 1, 10);
		INSERT INTO credit_entry (account, at, kind, amount, note) VALUES (1, 1, 'bought', 10, '');
		INSERT INTO audit (at, actor, address, act, detail) VALUES (1, '', '', 'made up', '');
		INSERT INTO api_key (account, name, hash, shown, created_at) VALUES (1, '', x'01', '', 1);
		INSERT INTO user (id, email, password, account, operator, created_at) VALUES (1, 'a@example.com', '', 1, 0, 1);
		INSERT INTO notice_target (id, account, channel, low, low_told, created_at) VALUES (1, 1, 'webhook', 0, 0, 1);
		INSERT INTO notice_target (id, account, channel, user, low, low_told, created_at) VALUES (2, 1, 'mail', 1, 0, 0, 1);
		INSERT INTO notice (id, target, kind, about, at, body) VALUES ('1', 1, 'low', '2026-11', 1, '{}');
		INSERT INTO lease (node, epoch, kind, subject, time_window, granted, spent, returned, ends_at, lost) VALUES ('east', 1, 1, 1, 0, 1, 0, 0, 1, 0)`
	const access = `
		INSERT INTO plan VALUES ('scale', 1, 1, 1, 1, 1);
		INSERT INTO account (id, plan) VALUES (1, 'scale');
		INSERT INTO api_key (id, account, hash) VALUES (1, 1, x'01')`
	const registry = `
		INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('a', 1, 0, 0, 0, 0, 0);
		INSERT INTO pushing (id, release, back, token, claimed, batch) VALUES (1, 'a', 0, 't', 't', 0)`
	filled := map[Database]string{Ledger: ledger, Access: access, Registry: registry}
	for _, c := range []struct {
		database  Database
		statement string
		says      string
	}{
		{Ledger, "UPDATE account SET bought = -1", "CHECK"},
		{Ledger, "UPDATE account SET compensated = -1", "CHECK"},
		{Ledger, "UPDATE account SET spent = -1", "CHECK"},
		{Ledger, "UPDATE account SET lost = -1", "CHECK"},
		{Ledger, "UPDATE account SET leased = -1", "CHECK"},
		{Ledger, "UPDATE account SET deducting = -1", "CHECK"},
		{Ledger, "UPDATE account SET bought = 'ten'", "INTEGER"},
		{Ledger, "UPDATE lease SET beyond = -1", "CHECK"},
		{Ledger, "UPDATE credit_entry SET amount = 5", "credit entries are never changed"},
		{Ledger, "DELETE FROM credit_entry", "credit entries are never deleted"},
		{Ledger, "INSERT INTO credit_entry (account, at, kind, amount, note) VALUES (1, 1, 'given', 10, '')", "CHECK"},
		{Ledger, "UPDATE audit SET detail = 'other'", "the audit log is never changed"},
		{Ledger, "DELETE FROM audit", "the audit log is never cut"},
		{Ledger, "INSERT INTO writer (id, generation, restoring) VALUES (2, 0, 0)", "CHECK"},
		{Ledger, "INSERT INTO api_key (account, name, hash, shown, created_at) VALUES (1, '', x'01', '', 1)", "UNIQUE"},
		{Ledger, "INSERT INTO user (email, password, account, operator, created_at) VALUES ('a@example.com', '', 1, 0, 1)", "UNIQUE"},
		{Ledger, "INSERT INTO user (email, password, operator, created_at) VALUES ('b@example.com', '', 0, 1)", "CHECK"},
		{Ledger, "INSERT INTO user (email, password, account, operator, created_at) VALUES ('b@example.com', '', 1, 1, 1)", "CHECK"},
		{Ledger, "INSERT INTO invitation (hash, email, operator, resets, expires_at) VALUES (x'01', 'b@example.com', 0, 0, 1)", "CHECK"},
		{Ledger, "INSERT INTO operator_token VALUES ('some', x'01', 'any', 1, 2)", "CHECK"},
		{Ledger, "INSERT INTO owner_token (account, name, hash, role, made_by, created_at, ends_at) VALUES (1, '', x'01', 'nodes', '', 1, 2)", "CHECK"},
		{Ledger, "INSERT INTO owner_token (account, name, hash, role, made_by, created_at, ends_at) VALUES (1, '', x'01', 'all', '', 1, 2), (1, '', x'01', 'read', '', 1, 2)", "UNIQUE"},
		{Ledger, "INSERT INTO operator_token VALUES ('some', x'01', 'all', 1, 2), ('some', x'02', 'read', 1, 2)", "UNIQUE"},
		{Ledger, "INSERT INTO idempotent_change VALUES (x'01', x'02', 1, x''), (x'01', x'03', 2, x'')", "UNIQUE"},
		{Ledger, "INSERT INTO lease SELECT * FROM lease", "UNIQUE"},
		{Ledger, "INSERT INTO request_log VALUES (1, 'a', 'east', '', 200, '', 1), (1, 'a', 'west', '', 200, '', 1)", "UNIQUE"},
		{Ledger, "INSERT INTO unresolved (id, account, key, node, at) VALUES ('a', 1, 1, 'east', 1), ('a', 1, 1, 'west', 1)", "UNIQUE"},
		{Ledger, "INSERT INTO key_month VALUES (9, 1, 1)", "FOREIGN KEY"},
		{Ledger, "INSERT INTO session VALUES (x'01', 9, 1, 1, '', '')", "FOREIGN KEY"},
		{Ledger, "INSERT INTO two_factor VALUES (9, '', 0, 1)", "FOREIGN KEY"},
		{Ledger, "INSERT INTO recovery_code VALUES (x'01', 9)", "FOREIGN KEY"},
		{Ledger, "INSERT INTO sign_in VALUES (x'01', 9, 1)", "FOREIGN KEY"},
		{Ledger, "INSERT INTO device VALUES (x'01', 9, 1)", "FOREIGN KEY"},
		{Ledger, "UPDATE account SET plan = 'none'", "FOREIGN KEY"},
		{Ledger, "DELETE FROM user", "FOREIGN KEY"}, // a target of notices is theirs
		{Ledger, "INSERT INTO notice_target (account, channel, low, low_told, created_at) VALUES (1, 'webhook', 0, 0, 1)", "UNIQUE"},
		{Ledger, "INSERT INTO notice_target (account, channel, user, low, low_told, created_at) VALUES (1, 'mail', 1, 0, 0, 1)", "UNIQUE"},
		{Ledger, "INSERT INTO notice_target (account, channel, low, low_told, created_at) VALUES (1, 'mail', 0, 0, 1)", "CHECK"},
		{Ledger, "INSERT INTO notice (id, target, kind, about, at, body) VALUES ('2', 1, 'low', '2026-11', 1, '{}')", "UNIQUE"},
		{Ledger, "INSERT INTO notice_target (account, channel, low, low_told, created_at) VALUES (1, 'fax', 0, 0, 1)", "CHECK"},
		{Ledger, "INSERT INTO notice_target (account, channel, low, low_told, created_at) VALUES (9, 'webhook', 0, 0, 1)", "FOREIGN KEY"},
		{Ledger, "INSERT INTO notice (id, target, kind, about, at, body) VALUES ('2', 9, 'low', '2026-11', 1, '{}')", "FOREIGN KEY"},
		{Ledger, "INSERT INTO api_key (account, name, hash, shown, created_at) VALUES (9, '', x'02', '', 1)", "FOREIGN KEY"},
		{Ledger, "INSERT INTO owner_token (account, name, hash, role, made_by, created_at, ends_at) VALUES (9, '', x'01', 'all', '', 1, 2)", "FOREIGN KEY"},
		{Ledger, "INSERT INTO user (email, password, account, operator, created_at) VALUES ('b@example.com', '', 9, 0, 1)", "FOREIGN KEY"},
		{Ledger, "INSERT INTO invitation (hash, email, account, operator, resets, expires_at) VALUES (x'01', 'b@example.com', 9, 0, 0, 1)", "FOREIGN KEY"},
		{Access, "INSERT INTO api_key (id, account, hash) VALUES (2, 1, x'01')", "UNIQUE"},
		{Access, "INSERT INTO heartbeat VALUES (2, 0)", "CHECK"},
		{Access, "UPDATE account SET plan = 'none'", "FOREIGN KEY"},
		{Access, "UPDATE api_key SET account = 9", "FOREIGN KEY"},
		{Registry, "UPDATE pushing SET claimed = 'other'", "CHECK"},
		{Registry, "INSERT INTO pushing (id, release, back, token, claimed, batch) VALUES (2, 'a', 0, 't', 't', 0)", "CHECK"},
		{Registry, "INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('a', 2, 0, 0, 0, 0, 0)", "UNIQUE"},
		{Registry, "INSERT INTO heartbeat VALUES (2, 0)", "CHECK"},
		{Registry, "INSERT INTO content_whole VALUES (2)", "CHECK"},
		{Registry, "INSERT INTO search_push VALUES (2, 0, 1)", "CHECK"},
		{Registry, "INSERT INTO unreleased VALUES (2, 1)", "CHECK"},
	} {
		db, ctx := openTemp(t), context.Background()
		require.NoError(t, Migrate(ctx, db, c.database))
		_, err := db.Exec(filled[c.database])
		require.NoError(t, err)
		_, err = db.Exec(c.statement)
		require.ErrorContains(t, err, c.says, c.statement)
	}
}

// TestEveryTableIsStrict: SQLite would store a text in a column of numbers otherwise, and a text that looks like a
// number, such as a name, as a number.
func TestEveryTableIsStrict(t *testing.T) {
	for _, database := range []Database{Registry, Access, Ledger} {
		db, ctx := openTemp(t), context.Background()
		require.NoError(t, Migrate(ctx, db, database))
		require.Empty(t, textsOf(t, db, `SELECT name FROM pragma_table_list
			WHERE type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%' ORDER BY name`), database)
	}
}

// TestOnlyTheseColumnsMayBeNull of the databases of the centre. The writer reads the others without asking.
func TestOnlyTheseColumnsMayBeNull(t *testing.T) {
	for database, want := range map[Database][]string{
		Access: {"api_key.old_hash"},
		Ledger: {
			"api_key.expires_at", "api_key.old_ends_at", "api_key.old_hash", "api_key.revoked_at", "audit.account",
			"invitation.account", "notice.delivered_at", "notice.next_at", "notice_target.user", "user.account",
		},
	} {
		db, ctx := openTemp(t), context.Background()
		require.NoError(t, Migrate(ctx, db, database))
		require.Equal(t, want, textsOf(t, db, `SELECT t.name || '.' || c.name FROM pragma_table_list t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND NOT c."notnull" AND NOT c.pk ORDER BY 1`), database)
	}
}

func textsOf(t *testing.T, db *sql.DB, query string) (texts []string) {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		texts = append(texts, text)
	}
	require.NoError(t, rows.Err())
	return texts
}

// TestNoIDIsGivenTwice: what an edge still names belongs to nobody else, also when its row is gone.
func TestNoIDIsGivenTwice(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	require.NoError(t, Migrate(ctx, db, Ledger))
	_, err := db.Exec("INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'scale', 0, 1)")
	require.NoError(t, err)
	for _, table := range []struct{ name, insert string }{
		{"api_key", "INSERT INTO api_key (account, name, hash, shown, created_at) VALUES (1, '', x'01', '', 1)"},
		{"user", "INSERT INTO user (email, password, operator, created_at) VALUES ('a@example.com', '', 1, 1)"},
		{"owner_token", "INSERT INTO owner_token (account, name, hash, role, made_by, created_at, ends_at) VALUES (1, '', x'01', 'all', '', 1, 2)"},
		{"account", "INSERT INTO account (name, email, plan, suspended, created_at) VALUES ('', '', 'scale', 0, 1)"},
	} {
		var ids [2]int64
		for i := range ids {
			result, err := db.Exec(table.insert)
			require.NoError(t, err)
			ids[i], err = result.LastInsertId()
			require.NoError(t, err)
			_, err = db.Exec("DELETE FROM "+table.name+" WHERE id = ?", ids[i])
			require.NoError(t, err)
		}
		require.Greater(t, ids[1], ids[0], table.name)
	}
}

// TestTablesThatGrowAreReadThroughAnIndex, where a statement looks for the rows of
// an account, a user or a time.
func TestTablesThatGrowAreReadThroughAnIndex(t *testing.T) {
	for database, columns := range map[Database][][2]string{
		Ledger: {
			{"api_key", "account"}, {"credit_entry", "account"}, {"idempotent_change", "at"}, {"owner_token", "account"},
			{"user", "account"}, {"invitation", "email"}, {"invitation", "account"}, {"session", "user"}, {"recovery_code", "user"},
			{"sign_in", "user"}, {"device", "user"}, {"audit", "account"}, {"notice", "target"}, {"usage", "account"}, {"request_log", "key"},
		},
		Access:   {{"api_key", "hash"}, {"api_key", "old_hash"}},
		Registry: {{"appointment", "cin"}, {"appointment", "din"}, {"partner", "llpin"}, {"search_name", "value"}, {"content", "bucket"}},
	} {
		db, ctx := openTemp(t), context.Background()
		require.NoError(t, Migrate(ctx, db, database))
		for _, c := range columns {
			var id, parent, unused int
			var plan string
			require.NoError(t, db.QueryRow("EXPLAIN QUERY PLAN SELECT 1 FROM "+c[0]+" WHERE "+c[1]+" = ?", 1).Scan(&id, &parent, &unused, &plan))
			require.Regexp(t, `^SEARCH `+c[0]+` USING .*\(`+c[1]+`=\?\)`, plan)
		}
	}
}

// TestANewLedgerHasThePlans that the contract names, and nothing that is owed or granted.
func TestANewLedgerHasThePlans(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	require.NoError(t, Migrate(ctx, db, Ledger))
	plans := textsOf(t, db, "SELECT id || printf(' %d %d %d %d %d', api_access, per_minute, monthly_volume, email, phone) FROM plan ORDER BY monthly_volume")
	require.Equal(t, []string{"free 0 0 0 0 0", "starter 1 60 10000 0 0", "growth 1 300 100000 1 0", "scale 1 1200 1000000 1 1"}, plans)

	_, err := db.Exec("INSERT INTO node (name, token_hash, created_at) VALUES ('east', x'01', 1)")
	require.NoError(t, err)
	var sums string
	require.NoError(t, db.QueryRow(`SELECT printf('%d %d %d %d, next ids %d', retired, epoch, declared, restoring,
		(SELECT count(*) FROM sqlite_sequence WHERE seq = 0 AND name IN ('account', 'api_key', 'user'))) FROM node, writer`).Scan(&sums))
	require.Equal(t, "0 0 1 0, next ids 3", sums, "an edge that is new has nothing to declare; after a restore ids leap, also of empty tables")
}

// TestDueNoticesAndOldRequestsAreFoundByAnIndex, as the writer looks for them every few seconds, and so is the usage
// of an account since a time, which pages show.
func TestDueNoticesAndOldRequestsAreFoundByAnIndex(t *testing.T) {
	db, ctx := openTemp(t), context.Background()
	require.NoError(t, Migrate(ctx, db, Ledger))
	for query, index := range map[string]string{
		"SELECT 1 FROM notice WHERE target = 1 AND next_at IS NOT NULL AND next_at < 9": "notice_due (target=? AND next_at>? AND next_at<?)",
		"SELECT 1 FROM notice WHERE target = 1 AND kind = 'test' AND about = ''":        "notice_once (target=? AND kind=? AND about=?)",
		"SELECT id FROM notice WHERE target = 1 ORDER BY at DESC":                       "notice_by_target (target=?)",
		"SELECT code FROM request_log WHERE id > 'a'":                                   "COVERING INDEX request_log_by_id (id>?)",
		"SELECT 1 FROM audit WHERE account = 1 ORDER BY id DESC":                        "audit_by_account (account=?)",
		"SELECT 1 FROM usage WHERE account = 1 AND hour >= 9":                           "PRIMARY KEY (account=? AND hour>?)",
	} {
		rows, err := db.Query("EXPLAIN QUERY PLAN " + query)
		require.NoError(t, err)
		var plans []string
		for rows.Next() {
			var id, parent, unused int
			var plan string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &plan))
			plans = append(plans, plan)
		}
		require.NoError(t, rows.Err())
		rows.Close()
		require.Len(t, plans, 1, "%s: %v: nothing is sorted", query, plans)
		require.Regexp(t, `^SEARCH \w+ USING .*`+regexp.QuoteMeta(index)+`$`, plans[0], query)
	}
}
