package sqld

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockName is the file in a server's directory that is locked while a regedge runs a server there.
	// It holds the server's process id and birth.
	lockName = "regedge.lock"
	// lockPatience is how long a killed regedge may still hold its lock.
	lockPatience = 2 * time.Second
	lockPause    = 10 * time.Millisecond
)

// ErrInUse means that another process runs a server in the directory.
var ErrInUse = errors.New("another regedge runs a server in this directory")

// hold is the right to run a server in a directory. It ends with this process at the latest.
type hold struct{ dir, file *os.File }

// takeDir locks a directory, and ends a server left there by a killed regedge: it would keep the
// addresses and write the same files.
func takeDir(dir string, output *output) (*hold, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	h := &hold{dir: folder}
	// The directory is locked, too: people delete files with such names. Some file systems lock only
	// files.
	if err = lock(folder); !errors.Is(err, ErrInUse) {
		h.file, err = os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err == nil {
		err = lock(h.file)
	}
	if err == nil {
		err = endOrphan(h.file.Name(), output)
	}
	if err != nil {
		h.release()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return h, nil
}

func lock(file *os.File) error {
	for began := time.Now(); ; time.Sleep(lockPause) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if time.Since(began) > lockPatience {
			return ErrInUse
		}
	}
}

// noteBytes is the length of a note, so that one write replaces another.
const noteBytes = 80

// note records the server's process.
func (h *hold) note(pid int) error {
	line := fmt.Sprintf("%d %s", pid, birth(pid))
	_, err := h.file.WriteAt(fmt.Appendf(nil, "%-*s\n", noteBytes-1, line), 0)
	return err
}

// release lets another process run a server here. The server must have ended.
func (h *hold) release() {
	if h.file != nil {
		h.file.Close()
	}
	h.dir.Close()
}

// endOrphan ends the process that a lock file names, if it still runs. Its birth distinguishes it from
// a later process with the same id. On Linux it was already asked to end when its parent died.
func endOrphan(path string, output *output) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Sscan(string(content), &pid); err != nil {
		return nil // nothing was started here
	}
	_, born, _ := strings.Cut(strings.TrimSpace(string(content)), " ")
	runs := func() bool { return born != "" && birth(pid) == born }
	process, err := os.FindProcess(pid)
	if err != nil || !runs() {
		return nil
	}
	defer process.Release()
	output.say(fmt.Sprintf("ending the server that a regedge which was killed has left: process %d", pid))
	_ = process.Signal(os.Interrupt)
	for began := time.Now(); runs(); time.Sleep(lockPause) {
		if waited := time.Since(began); waited > 2*stopLimit {
			return fmt.Errorf("process %d, a server of a regedge that was killed, does not end", pid)
		} else if waited > stopLimit {
			_ = process.Kill()
		}
	}
	return nil
}
