package pki_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
)

// together acts several times at once, and returns the errors.
func together(act func() error) (failed []error) {
	errs := make([]error, 6)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = act() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// TestKeysMadeTogetherBelongTogether: a setup that ran twice at once left the key of one run beside the certificate of
// the other, and one of them said that all was well.
func TestKeysMadeTogetherBelongTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	failed := together(func() error {
		_, err := pki.Create(dir, time.Now)
		return err
	})
	require.Len(t, failed, 5)
	for _, err := range failed {
		require.ErrorIs(t, err, pki.ErrExists)
	}
	made, err := pki.Open(dir, time.Now)
	require.NoError(t, err)
	require.Empty(t, together(func() error {
		_, _, err := made.Certificate("centre", "centre.test")
		return err
	}))
	_, err = tls.LoadX509KeyPair(filepath.Join(dir, "centre.crt"), filepath.Join(dir, "centre.key"))
	require.NoError(t, err)

	for _, name := range []string{"registry.pub", "access.pub", "registry-replica.pub", "access-replica.pub"} {
		before := read(t, dir, name)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		require.Empty(t, together(func() error {
			_, err := made.AddPublic()
			return err
		}))
		require.Equal(t, before, read(t, dir, name))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "access-replica.key")))
	require.Empty(t, together(func() error {
		_, err := made.AddReplicaKeys()
		return err
	}))
	before := read(t, dir, "access-replica.pub")
	require.NoError(t, os.Remove(filepath.Join(dir, "access-replica.pub")))
	_, err = made.AddPublic()
	require.NoError(t, err)
	require.Equal(t, before, read(t, dir, "access-replica.pub"))

	made, err = pki.Open(dir, time.Now)
	require.NoError(t, err)
	failed = together(func() error {
		_, err := made.Replace(dir + ".aside")
		return err
	})
	require.Len(t, failed, 5)
	for _, err := range failed {
		require.ErrorIs(t, err, pki.ErrMeanwhile, "it would replace the new keys")
	}
	_, _, err = made.Certificate("edge")
	require.NoError(t, err)
}

// TestKeysThatWereMadeMeanwhileAreNotReplaced: whoever began with an empty folder was asked about none.
func TestKeysThatWereMadeMeanwhileAreNotReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	first, second := createdMeanwhile(t, dir)
	_, err := pki.Create(dir, first)
	require.NoError(t, err)
	require.ErrorIs(t, <-second, pki.ErrMeanwhile)

	first, second = createdMeanwhile(t, dir)
	opened, err := pki.Open(dir, first)
	require.NoError(t, err)
	_, err = opened.Replace(dir + ".aside")
	require.NoError(t, err)
	require.ErrorIs(t, <-second, pki.ErrMeanwhile, "it found other keys")

	_, err = pki.Create(dir, time.Now)
	require.ErrorIs(t, err, pki.ErrExists)
	require.NotErrorIs(t, err, pki.ErrMeanwhile)
}

// createdMeanwhile returns a clock for a run that makes keys. While that has the folder's lock, its first look at the clock, before
// ca.key is there, begins a second run and returns once that waits. The channel gets the second run's error.
func createdMeanwhile(t *testing.T, dir string) (clock func() time.Time, second chan error) {
	second = make(chan error, 1)
	var once sync.Once
	return func() time.Time {
		once.Do(func() {
			go func() {
				_, err := pki.Create(dir, time.Now)
				second <- err
			}()
			require.Eventually(t, func() bool { return waiting(t, dir) == 2 }, time.Minute, time.Millisecond, "it waits")
		})
		return time.Now()
	}, second
}

// waiting is how many runs have the folder open, of which one holds its lock.
func waiting(t *testing.T, dir string) (runs int) {
	for _, name := range testkit.OpenFiles(t, dir) {
		if name == dir {
			runs++
		}
	}
	return runs
}
