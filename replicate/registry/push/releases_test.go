package push

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pushed makes a release with another change, pushes it, and returns its id.
func (f *fixture) pushed() string {
	f.t.Helper()
	f.edit(nil, "UPDATE company SET paid_up_capital = coalesce(paid_up_capital, 0) + 1 WHERE cin = (SELECT min(cin) FROM company)")
	return f.push().Release
}

// rollback goes back to what was current before, and requires that this is the release want.
func (f *fixture) rollback(want string) Report {
	f.t.Helper()
	previous, err := Previous(f.t.Context(), f.client)
	require.NoError(f.t, err)
	require.Equal(f.t, want, previous)
	config := f.config(previous)
	config.Rollback = true
	report, err := Run(f.t.Context(), config)
	require.NoError(f.t, err)
	f.same(want)
	return report
}

func (f *fixture) noEarlier() {
	f.t.Helper()
	_, err := Previous(f.t.Context(), f.client)
	require.ErrorIs(f.t, err, ErrNoEarlier)
}

func TestARollbackGoesBackToWhatWasCurrentBefore(t *testing.T) {
	f, a := newPushed(t)
	b, c := f.pushed(), f.pushed()
	f.rollback(b)
	d := f.pushed()
	f.rollback(b)
	f.rollback(a)
	f.noEarlier()
	require.Equal(t, d, f.push().Release, "the file again")
	for _, id := range []string{c, a} { // older ones, pushed on purpose
		_, err := Run(t.Context(), f.config(id))
		require.NoError(t, err)
	}
	f.rollback(c)
	f.rollback(d)
	f.rollback(a)
	f.noEarlier()

	config := f.config(c)
	config.Rollback = true
	_, err := Run(t.Context(), config)
	require.NoError(t, err, "one that was never below, as on a new primary")
	f.rollback(a)
}

// TestARollbackHasATimeOfItsOwn: it is when the release became current again, not when it was first pushed.
func TestARollbackHasATimeOfItsOwn(t *testing.T) {
	f, a := newPushed(t)
	f.pushed()
	f.later = time.Hour
	f.rollback(a)
	list, err := Releases(t.Context(), f.primary())
	require.NoError(t, err)
	require.Equal(t, a, list[0].ID)
	require.True(t, list[0].Pushed.After(list[1].Pushed))
}

// interrupted runs a push up to its first transaction.
func (f *fixture) interrupted(config Config) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	config.Progress = whileWriting(cancel)
	_, err := Run(ctx, config)
	require.ErrorIs(f.t, err, context.Canceled)
	require.Len(f.t, dump(f.t, f.primary(), "SELECT 1 FROM pushing WHERE release <> ''"), 1)
}

func TestARollbackUndoesAnInterruptedPushAndContinuesARollback(t *testing.T) {
	f, a := newPushed(t)
	b := f.pushed()
	f.edit(nil, "UPDATE company SET paid_up_capital = 9")
	f.interrupted(f.config(f.snapshot()))
	f.rollback(b)
	config := f.config(a)
	config.Rollback = true
	f.interrupted(config)
	f.rollback(a)
	f.noEarlier()
}

func TestAMissingSnapshotIsAnError(t *testing.T) {
	f, a := newPushed(t)
	b, c := f.pushed(), f.pushed()
	require.NoError(t, os.Remove(snapshotPath(f.snapshots, b)))
	previous, err := Previous(t.Context(), f.client)
	require.NoError(t, err)
	require.Equal(t, b, previous, "never an older one")
	config := f.config(previous)
	config.Rollback = true
	_, err = Run(t.Context(), config)
	require.ErrorIs(t, err, ErrNoSnapshot)
	require.ErrorContains(t, err, "that of release "+b+" is not in "+f.snapshots+"; kept are: "+a+", "+c)
	f.same(c)
	require.NoError(t, os.Link(snapshotPath(f.snapshots, a), snapshotPath(f.snapshots, b)))
	_, err = Run(t.Context(), config)
	require.ErrorIs(t, err, ErrNoSnapshot, "it was put there by hand, under another name")
	f.same(c)
	require.Empty(t, dump(t, f.primary(), "SELECT 1 FROM pushing WHERE release <> ''"), "nothing is begun")
	config.Snapshots = t.TempDir()
	_, err = Run(t.Context(), config)
	require.ErrorContains(t, err, "; kept are: none")
}

func TestOldSnapshotsAreRemovedButThoseOfRollbacks(t *testing.T) {
	f := newFixture(t)
	kept := func(want ...string) {
		t.Helper()
		require.NoError(t, Prune(t.Context(), f.snapshots, f.client, 2))
		got, err := Snapshots(f.snapshots)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	f.push()
	b, c := f.pushed(), f.pushed()
	kept(b, c)
	f.rollback(b)
	d := f.pushed()
	kept(b, c, d) // c is one of the two newest
	f.rollback(b)
	e := f.pushed()
	kept(b, d, e)
	f.rollback(b)
}
