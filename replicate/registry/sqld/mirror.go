package sqld

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Mirror is a place beside a primary that has its bases, so that the primary sends each base once, however many
// replicas there are: object storage, a CDN, a web server. A base never changes, and replicas verify its hash, which
// they get from the primary. So a mirror need only be trusted to show the data to nobody else. What it lacks, replicas
// take from the primary.
type Mirror struct {
	// URL is the address (http or https) below which a base has the name of its hash.
	URL *url.URL
	// Upload is a shell command that uploads the file $REGEDGE_FILE under the name $REGEDGE_NAME. It is empty if
	// somebody else uploads.
	Upload string
}

const (
	// uploadLimit is how long a release waits for its upload. After that it becomes current, and the upload goes on.
	uploadLimit = 5 * time.Minute
	// uploadPause is how long an upload waits after one that failed. It doubles, up to uploadLongest.
	uploadPause   = 10 * time.Second
	uploadLongest = 10 * time.Minute
	// uploadSaid is how much of what a failed command printed is logged, in bytes.
	uploadSaid = 500
	// baseUploaded is the file in a base's folder that records the mirror to which the base was uploaded.
	baseUploaded = "uploaded"
)

// uploadHangs is how long an upload may take before it is ended, and tried again. A variable for tests.
var uploadHangs = 3 * time.Hour

// errUploadHangs means that an upload has taken uploadHangs.
var errUploadHangs = errors.New("--mirror-upload: it took too long, and was ended")

// mirrored is the name of a base at mirrors.
func (b base) mirrored() string { return hex.EncodeToString(b.SHA) + ".zst" }

// address is where a mirror has a base, "" without a mirror.
func (m *Mirror) address(b base) string {
	if m == nil {
		return ""
	}
	return m.URL.JoinPath(b.mirrored()).String()
}

// upload brings the base in a folder to the mirror, unless it is there.
func (m *Mirror) upload(ctx context.Context, folder string, output *output) error {
	if m == nil || m.Upload == "" {
		return nil
	}
	b, err := readBase(folder)
	if err != nil {
		return nil // there is nothing to upload
	}
	mark := filepath.Join(folder, baseUploaded)
	if before, err := os.ReadFile(mark); err == nil && string(before) == m.address(b) {
		return nil
	}
	ctx, end := context.WithTimeoutCause(ctx, uploadHangs, errUploadHangs)
	defer end()
	said := new(tail)
	command := exec.CommandContext(ctx, "/bin/sh", "-c", m.Upload)
	command.Stdout, command.Stderr = said, said
	command.Env = append(os.Environ(), "REGEDGE_FILE="+filepath.Join(folder, baseData), "REGEDGE_NAME="+b.mirrored())
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) } // together with what the shell has started
	command.WaitDelay = stopLimit
	began := time.Now()
	err = command.Run()
	if err != nil && command.Process != nil {
		_ = command.Cancel() // what the shell has left in the background
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("--mirror-upload: %w: %q", err, strings.TrimSpace(string(said.kept)))
	}
	output.say(fmt.Sprintf("uploaded the compressed database to the mirror in %s", time.Since(began).Round(time.Second/10)))
	if err := writeSynced(mark, []byte(m.address(b))); err != nil {
		output.say(fmt.Sprintf("the next start uploads it again: %v", err))
	}
	return nil
}

// tail keeps the end of what is written to it, uploadSaid bytes.
type tail struct{ kept []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-uploadSaid):]...)
	t.kept = append(t.kept[:0], t.kept[max(0, len(t.kept)-uploadSaid):]...)
	return len(p), nil
}

// errUploadLate means that an upload takes longer than a release waits for it.
var errUploadLate = errors.New("it is not there yet, and the release does not wait any longer")

// uploadFirst uploads the base of a seed before the seed's release becomes current, since all replicas ask for it then.
// It gives up after an error, after uploadLimit, when the seed is withdrawn, and once stop is closed; keepUploaded then
// goes on.
func (s *Server) uploadFirst(seed, identity string, output *output, stop <-chan struct{}) {
	ctx, cancel := untilClosed(stop)
	defer cancel()
	ctx, end := context.WithTimeoutCause(ctx, uploadLimit, errUploadLate)
	defer end()
	go func() {
		defer cancel()
		for info, err := os.Stat(seed); err == nil && seedIdentity(info) == identity; info, err = os.Stat(seed) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(seedPause):
			}
		}
	}()
	if err := s.Mirror.upload(ctx, filepath.Join(s.Dir, baseInWork), output); err != nil && !errors.Is(err, context.Canceled) {
		output.say(fmt.Sprintf("replicas copy the database from the primary until the mirror has it: %v", err))
	}
}

// keepUploaded uploads the base of a running primary, again and again until the mirror has it.
func (s *Server) keepUploaded(r *run) {
	ctx, cancel := untilClosed(r.ended)
	defer cancel()
	for pause := uploadPause; ; pause = min(2*pause, uploadLongest) {
		err := s.Mirror.upload(ctx, filepath.Join(s.Dir, baseFolder), r.output)
		if err == nil || ctx.Err() != nil {
			return
		}
		r.output.say(fmt.Sprintf("replicas copy the database from the primary until the mirror has it; tried again in %s: %v", pause, err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// untilClosed returns a context that is done once a channel is closed.
func untilClosed(stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
