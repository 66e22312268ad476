package sqld

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// mirrorOf makes a base, and a mirror to which a command uploads, in which DIR stands for a folder.
func mirrorOf(t *testing.T, upload string) (m *Mirror, folder, dir string) {
	t.Helper()
	dir = t.TempDir()
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	placed(t, s)
	at, err := url.Parse("https://user:secret@bucket.example.org/registry?token=secret")
	require.NoError(t, err)
	return &Mirror{URL: at, Upload: strings.ReplaceAll(upload, "DIR", dir)}, filepath.Join(s.Dir, baseFolder), dir
}

// TestAnUploadIsDoneOnceForEachMirror, and the address of a base keeps what the mirror's has.
func TestAnUploadIsDoneOnceForEachMirror(t *testing.T) {
	m, folder, dir := mirrorOf(t, `echo "$REGEDGE_NAME" >> DIR/names; cmp "$REGEDGE_FILE" `+"DATA")
	m.Upload = strings.ReplaceAll(m.Upload, "DATA", filepath.Join(folder, baseData))
	b, err := readBase(folder)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("https://user:secret@bucket.example.org/registry/%x.zst?token=secret", b.SHA), m.address(b))
	log := &testkit.Log{}
	for range 2 {
		require.NoError(t, m.upload(t.Context(), folder, newOutput(log)))
	}
	m.URL.Host = "other.example.org"
	require.NoError(t, m.upload(t.Context(), folder, newOutput(log)))
	names, err := os.ReadFile(filepath.Join(dir, "names"))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat(b.mirrored()+"\n", 2), string(names))
	require.NotContains(t, log.String(), "secret")
}

// TestAnUploadThatCannotBeNotedWasDone: to repeat it all the time would cost more.
func TestAnUploadThatCannotBeNotedWasDone(t *testing.T) {
	m, folder, _ := mirrorOf(t, "true")
	require.NoError(t, os.Mkdir(filepath.Join(folder, baseUploaded), 0o700))
	log := &testkit.Log{}
	require.NoError(t, m.upload(t.Context(), folder, newOutput(log)))
	require.Contains(t, log.String(), "the next start uploads it again")
}

// TestAnUploadThatFailsLeavesNothing: no process in the background, and the end of what it printed.
func TestAnUploadThatFailsLeavesNothing(t *testing.T) {
	m, folder, dir := mirrorOf(t, "sleep 1000 >/dev/null 2>&1 & echo $! > DIR/pid; yes | head -c 3000000; echo no way there >&2; exit 3")
	err := m.upload(t.Context(), folder, newOutput(t.Output()))
	require.ErrorContains(t, err, `exit status 3: "`)
	require.ErrorContains(t, err, `no way there"`)
	require.Less(t, len(err.Error()), 2*uploadSaid)
	require.NoFileExists(t, filepath.Join(folder, baseUploaded))
	requireEnds(t, filepath.Join(dir, "pid"))
}

// TestOnlyTheEndOfAnOutputIsKept, however much it is.
func TestOnlyTheEndOfAnOutputIsKept(t *testing.T) {
	said, all := new(tail), []byte{}
	for n := range 3 * uploadSaid {
		part := bytes.Repeat([]byte{byte('a' + n%26)}, n%(2*uploadSaid))
		_, _ = said.Write(part)
		all = append(all, part...)
		require.Equal(t, string(all[max(0, len(all)-uploadSaid):]), string(said.kept))
		require.LessOrEqual(t, cap(said.kept), 8*uploadSaid)
	}
}

// TestAnUploadThatFailsIsTriedAgainEveryTenMinutesAtLast: neither without a pause, nor after days.
func TestAnUploadThatFailsIsTriedAgainEveryTenMinutesAtLast(t *testing.T) {
	m, folder, _ := mirrorOf(t, "exit 1")
	synctest.Test(t, func(t *testing.T) {
		log := &testkit.Log{}
		r := &run{output: newOutput(log), ended: make(chan struct{})}
		time.AfterFunc(time.Hour, func() { close(r.ended) })
		began := time.Now()
		(&Server{Config: Config{Dir: filepath.Dir(folder), Mirror: m}}).keepUploaded(r)
		require.Equal(t, time.Hour, time.Since(began), "it ends with the primary")
		var pauses []string
		for _, said := range regexp.MustCompile(`tried again in (\w+):`).FindAllStringSubmatch(log.String(), -1) {
			pauses = append(pauses, said[1])
		}
		require.Equal(t, []string{"10s", "20s", "40s", "1m20s", "2m40s", "5m20s", "10m0s", "10m0s", "10m0s", "10m0s", "10m0s"}, pauses)
		synctest.Wait()
	})
}

// TestAnUploadThatHangsIsEnded, since it would be tried never again.
func TestAnUploadThatHangsIsEnded(t *testing.T) {
	defer func(before time.Duration) { uploadHangs = before }(uploadHangs)
	uploadHangs = 50 * time.Millisecond
	m, folder, _ := mirrorOf(t, "sleep 1000")
	require.ErrorIs(t, m.upload(t.Context(), folder, newOutput(t.Output())), errUploadHangs)
}

// TestASeedCanBeWithdrawnWhileItIsUploaded, or replaced: the next push does not wait for that.
func TestASeedCanBeWithdrawnWhileItIsUploaded(t *testing.T) {
	for name, next := range map[string]bool{"withdrawn": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			m, _, dir := mirrorOf(t, "touch DIR/began; sleep 60")
			log := &testkit.Log{}
			s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}, Mirror: m}}
			content := seedIn(t, s)
			changed := make(chan error, 1)
			go func() {
				for range 3000 {
					if exists(filepath.Join(dir, "began")) {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				err := Seed(s.Dir).Withdraw()
				if next {
					err = errors.Join(err, os.WriteFile(SeedFile(s.Dir), content, 0o600))
				}
				changed <- err
			}()
			began := time.Now()
			taken, err := s.takeSeed(newOutput(log), nil)
			require.NoError(t, err)
			require.False(t, taken)
			require.NoError(t, <-changed)
			require.Less(t, time.Since(began), 50*time.Second)
			require.NotContains(t, log.String(), "until the mirror has it")
		})
	}
}

// TestAnUploadThatGoesOnInTheBackgroundHasFailed: nobody would know how it ends.
func TestAnUploadThatGoesOnInTheBackgroundHasFailed(t *testing.T) {
	t.Parallel()
	m, folder, dir := mirrorOf(t, "sleep 60 & echo $! > DIR/pid")
	began := time.Now()
	require.ErrorIs(t, m.upload(t.Context(), folder, newOutput(t.Output())), exec.ErrWaitDelay)
	require.Less(t, time.Since(began), 50*time.Second)
	requireEnds(t, filepath.Join(dir, "pid"))
}

// requireEnds waits for the end of the process whose id is in a file.
func requireEnds(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(string(content), &pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return birth(pid) == "" }, 10*time.Second, time.Millisecond)
}
