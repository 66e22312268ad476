package push

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var errNo = errors.New("not confirmed")

// asked pushes a release without a confirmation, and returns why it was asked for.
func (f *fixture) asked(release string, rollback bool) []string {
	f.t.Helper()
	config := f.config(release)
	config.Rollback = rollback
	var doubts []string
	config.Confirm = func(r Report) error {
		doubts = r.Doubts
		return errNo
	}
	report, err := Run(f.t.Context(), config)
	if doubts == nil {
		require.NoError(f.t, err)
		return nil
	}
	require.ErrorIs(f.t, err, errNo)
	require.Zero(f.t, report.Transactions)
	require.Empty(f.t, dump(f.t, f.primary(), "SELECT 1 FROM pushing WHERE release <> ''"), "nothing was begun")
	config.DryRun = true
	report, err = Run(f.t.Context(), config)
	require.NoError(f.t, err, "a dry run asks nothing")
	require.Equal(f.t, doubts, report.Doubts)
	return doubts
}

func TestAPushThatRemovesMoreThanAFiftiethIsConfirmed(t *testing.T) {
	f := newFixture(t)
	release := f.snapshot()
	require.Nil(t, f.asked(release, false), "an empty primary has nothing to lose")
	var had int
	_, err := fmt.Sscanf(dump(t, f.primary(), "SELECT count(*) FROM director")[0], "[{%d", &had)
	require.NoError(t, err)
	drop := "DELETE FROM director WHERE din IN (SELECT din FROM director LIMIT %d)"
	f.edit(nil, fmt.Sprintf(drop, had/50))
	require.Nil(t, f.asked(f.snapshot(), false), "2%%")
	left := had - had/50
	f.edit(nil, fmt.Sprintf(drop, left/50+1))
	fewer := f.snapshot()
	doubt := fmt.Sprintf("%d of %d directors would go", left/50+1, left)
	require.Equal(t, []string{doubt}, f.asked(fewer, false))
	_, err = Run(t.Context(), f.config(fewer))
	require.NoError(t, err)
	require.Nil(t, f.asked(release, true), "a rollback that removes nothing")
	require.Len(t, f.asked(fewer, true), 1, "a rollback that does")
}

// TestAPushWithoutAppointmentsIsConfirmed: an import without the file of directors removes no company, but
// nearly all that is known of their boards.
func TestAPushWithoutAppointmentsIsConfirmed(t *testing.T) {
	f, first := newPushed(t)
	for table, key := range map[string]string{"appointment": "cin, din", "partner": "llpin, who"} {
		var had int
		_, err := fmt.Sscanf(dump(t, f.primary(), "SELECT count(*) FROM "+table)[0], "[{%d", &had)
		require.NoError(t, err)
		keep := func(rows int) string {
			return fmt.Sprintf("DELETE FROM %[1]s WHERE (%[2]s) NOT IN (SELECT %[2]s FROM %[1]s LIMIT %[3]d)", table, key, rows)
		}
		if had > 50 { // so that a fiftieth is a number of rows
			had -= had % 50
			f.edit(nil, keep(had))
			f.push()
		}
		f.edit(nil, keep(had-had/50))
		require.Nil(t, f.asked(f.snapshot(), false), "2%%, which is pushed")
		left := had - had/50
		gone := left/50 + 1
		f.edit(nil, keep(left-gone))
		fewer := f.snapshot()
		require.Equal(t, []string{fmt.Sprintf("%d of %d %ss would go", gone, left, table)}, f.asked(fewer, false))
		config := f.config(fewer)
		config.DryRun = true
		report, err := Run(t.Context(), config)
		require.NoError(t, err)
		require.EqualValues(t, gone, report.WouldGo(), "what --yes has to name")
		require.Zero(t, report.Removed())
		_, err = Run(t.Context(), f.config(fewer))
		require.NoError(t, err)
	}
	require.Nil(t, f.asked(first, true), "a rollback that brings them back")
}

func TestAnOlderPushAndAStrangersAreConfirmed(t *testing.T) {
	f, _ := newPushed(t)
	content, err := os.ReadFile(f.registry)
	require.NoError(t, err)
	f.edit(nil, "UPDATE company SET paid_up_capital = 6 WHERE cin = (SELECT min(cin) FROM company)")
	older := f.snapshot()
	f.edit(nil, "UPDATE company SET paid_up_capital = 7 WHERE cin = (SELECT min(cin) FROM company)")
	require.Nil(t, f.asked(f.snapshot(), false), "a release may be left out")
	doubts := f.asked(older, false)
	require.Len(t, doubts, 2)
	made := f.list("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', released_at, 'unixepoch') FROM release WHERE id IN ('edit-1', 'edit-2') ORDER BY id")
	require.Equal(t, fmt.Sprintf("it was made on %s, before release edit-2, which is current, on %s", made[0], made[1]), doubts[0])
	require.Equal(t, "its file does not continue release edit-2, which is current", doubts[1])
	require.Nil(t, f.asked(older, true), "a rollback")

	require.NoError(t, os.WriteFile(f.registry, content, 0o600))
	f.releases += 100 // later than all before
	f.edit(nil, "UPDATE company SET paid_up_capital = 8 WHERE cin = (SELECT min(cin) FROM company)")
	require.Equal(t, []string{"its file does not continue release edit-1, which is current"}, f.asked(f.snapshot(), false))
}

// TestAReleaseThatWasRolledBackIsConfirmed: the file that is pushed next holds it still, unless something was imported.
func TestAReleaseThatWasRolledBackIsConfirmed(t *testing.T) {
	f, _ := newPushed(t)
	first := f.snapshot()
	f.edit(nil, "UPDATE company SET paid_up_capital = 6 WHERE cin = (SELECT min(cin) FROM company)")
	f.push()
	wrong := f.snapshot()
	require.Nil(t, f.asked(wrong, false), "it is there")
	require.Nil(t, f.asked(first, true))
	require.Equal(t, []string{"it was rolled back: what was wrong with it would be back"}, f.asked(wrong, false))
	f.edit(nil, "UPDATE company SET paid_up_capital = 7 WHERE cin = (SELECT min(cin) FROM company)")
	require.Nil(t, f.asked(f.snapshot(), false), "it was mended")
	require.Nil(t, f.asked(first, true))
	_, err := Run(t.Context(), f.config(wrong))
	require.NoError(t, err, "confirmed")
	require.Nil(t, f.asked(wrong, false), "it is current again")
}

// TestAPushThatGoesOnIsNotConfirmedAgain: what is left to remove has another number then.
func TestAPushThatGoesOnIsNotConfirmedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("a small registry is pushed in one transaction")
	}
	f, _ := newPushed(t)
	f.edit(nil, "DELETE FROM director", "UPDATE company SET phone = '1'")
	release := f.snapshot()
	asked := 0
	config := f.config(release)
	config.Confirm = func(Report) error { asked++; return nil }
	ctx, cancel := context.WithCancel(t.Context())
	config.Progress = whileWriting(cancel)
	_, err := Run(ctx, config)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, dump(t, f.primary(), "SELECT 1 FROM pushing WHERE release <> ''"), 1, "interrupted")
	require.Nil(t, f.asked(release, false))
	require.Equal(t, 1, asked)
	f.same(release)
}
