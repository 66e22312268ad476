package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"regedge/host/hint"
	"regedge/replicate/heartbeat"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/push"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// pushFlags are the flags of push and rollback.
type pushFlags struct {
	Registry          string `required:"" placeholder:"URL" help:"The registry's primary."`
	RegistryToken     string `placeholder:"TOKEN" help:"Token of the primary, that may write."`
	RegistryTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the primary; it wins over the token itself."`
	Releases          string `type:"path" placeholder:"DIR" help:"Where the snapshot of each pushed release is kept, for a rollback, which needs it. By default a push keeps them in releases beside its file."`
	Primary           string `name:"primary-dir" type:"path" placeholder:"DIR" help:"Directory of the primary (regedge primary --dir), on this machine. A push of which more than a twentieth differs then hands the whole file over there."`
	DryRun            bool   `env:"-" help:"Print what differs and write nothing."`
	JSON              bool   `name:"json" env:"-" help:"Print the result as one JSON object instead of a table; progress and errors go to standard error as without it."`
}

// pushMemory is Go's soft memory limit for a push, in bytes: one of all of India must stay below 256 MB with SQLite's own.
const pushMemory = 160 << 20

type pushCommand struct {
	File string `arg:"" type:"path" help:"The registry file to push."`
	pushFlags
	Yes  *int64 `env:"-" placeholder:"NUMBER" help:"Confirm a push that removes more than 2% of a kind of record, of the appointments or partners, is older than what is there, does not continue it, or was rolled back: the number of records that would go."`
	Keep int    `default:"3" help:"How many releases are kept: the current one and those that rollbacks go back to (${default})."`
}

type rollbackCommand struct {
	pushFlags
	Yes bool   `env:"-" help:"Do not ask. Needed where there is no terminal to ask at."`
	To  string `env:"-" placeholder:"RELEASE" help:"The release to go back to. By default the one that was current before."`
}

// Validate refuses early what would fail later.
func (c *pushCommand) Validate() error {
	if c.Keep < 1 {
		return errors.New("--keep is at least 1")
	}
	if c.Yes != nil && *c.Yes < 0 {
		return errors.New("--yes is the number of records that would go: 0 or more")
	}
	return c.pushFlags.check()
}

// Validate refuses early what would fail later.
func (c *rollbackCommand) Validate() error {
	if c.Releases == "" {
		return errors.New("--releases is needed: the directory that push has kept the releases in")
	}
	return c.pushFlags.check()
}

func (f *pushFlags) check() error {
	if !isRemote(f.Registry) {
		return fmt.Errorf("--registry or REGEDGE_REGISTRY takes the URL of the registry's primary, such as http://127.0.0.1:8181; got %q", f.Registry)
	}
	if f.Primary == "" {
		return nil
	}
	info, err := os.Stat(f.Primary)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return fmt.Errorf("--primary-dir: %w", err)
	}
	return nil
}

// Run makes a snapshot of the file and pushes it.
func (c *pushCommand) Run(ctx context.Context, m *Main) (err error) {
	limitMemory(pushMemory)
	if c.Releases == "" {
		c.Releases = filepath.Join(filepath.Dir(c.File), "releases")
	}
	if _, err := os.Stat(c.File); err != nil {
		return c.explain(fmt.Errorf("open the registry file: %w", err))
	}
	primary, err := m.openAnswering(ctx, c.Registry, c.RegistryToken, c.RegistryTokenFile)
	if err != nil {
		return c.explain(err)
	}
	defer func() { err = errors.Join(err, primary.Close()) }()
	shown := newStages(m.Stderr, m.Now, "pushing")
	defer shown.finish()
	release, err := c.prepare(ctx, shown.set)
	if err != nil {
		return c.explain(err)
	}
	config := push.Config{Primary: primary, Release: release, File: c.File, Confirm: func(r push.Report) error { return c.confirm(ctx, m, &r) }}
	if err := c.run(ctx, m, config, shown); err != nil || c.DryRun {
		return err
	}
	return push.Prune(ctx, c.Releases, primary, c.Keep)
}

// prepare checks the file and makes the snapshot, unless there is one of a file checked earlier. A dry
// run compares the file itself.
func (c *pushCommand) prepare(ctx context.Context, progress func(push.Progress)) (release string, err error) {
	if kept, err := push.Kept(ctx, c.File, c.Releases); err != nil || !kept {
		if err := refuseBroken(ctx, c.File); err != nil {
			return "", err
		}
	}
	if c.DryRun {
		return push.Prepare(ctx, c.File, progress)
	}
	return push.Snapshot(ctx, c.File, c.Releases, progress)
}

// Run pushes an earlier release.
func (c *rollbackCommand) Run(ctx context.Context, m *Main) (err error) {
	primary, err := m.openAnswering(ctx, c.Registry, c.RegistryToken, c.RegistryTokenFile)
	if err != nil {
		return c.explain(err)
	}
	defer func() { err = errors.Join(err, primary.Close()) }()
	release := c.To
	if release == "" {
		if release, err = push.Previous(ctx, primary); err != nil {
			return c.explain(err)
		}
	}
	shown := newStages(m.Stderr, m.Now, "rolling back")
	defer shown.finish()
	config := push.Config{Primary: primary, Release: release, Rollback: true, Ask: func(r push.Report) error { return c.confirm(ctx, m, &r) }}
	return c.run(ctx, m, config, shown)
}

// run pushes a release and prints the report.
func (f *pushFlags) run(ctx context.Context, m *Main, config push.Config, shown *stages) error {
	config.Snapshots, config.DryRun, config.Now = f.Releases, f.DryRun, m.Now
	config.Failed = shown.failed
	if f.Primary == "" {
		shown.faster = "On the primary's machine --primary-dir would hand over the whole file, in a fraction of the time."
	}
	config.Progress, config.PrimaryDir = shown.set, sqld.Seed(f.Primary)
	config.Confirm, config.Ask = askedAfter(shown.finish, config.Confirm), askedAfter(shown.finish, config.Ask)
	report, err := push.Run(ctx, config)
	shown.finish()
	if err != nil {
		if ctx.Err() != nil {
			return hint.With(fmt.Errorf("interrupted: %w", err), "what was written is whole; the same command goes on from there")
		}
		return f.explain(err)
	}
	if config.Rollback {
		report.Doubts = nil // a rollback always asks
	}
	return f.print(m, &report, config.Rollback)
}

// print prints the report. If that fails after a rollback, the hint warns against running the command again: it would
// go back one release further.
func (f *pushFlags) print(m *Main, report *push.Report, rollback bool) (err error) {
	if f.JSON {
		err = printJSON(m.Stdout, pushedOf(report, f.DryRun))
	} else {
		err = writePushed(m.Stdout, report, f.DryRun)
	}
	if err == nil || f.DryRun { // on a full disk, say
		return err
	}
	err = fmt.Errorf("release %s is current, but what changed can't be printed: %w", report.Release, err)
	if rollback {
		return hint.With(err, "without --to the same command would go back further; regedge status --registry shows the releases")
	}
	return hint.With(err, "the same command finds nothing more to write; regedge status --registry shows the releases")
}

// confirm asks for the number of records that a doubtful push would remove, unless --yes has it.
func (c *pushCommand) confirm(ctx context.Context, m *Main, report *push.Report) error {
	number := strconv.FormatInt(report.WouldGo(), 10)
	doubts := strings.Join(report.Doubts, "; ")
	switch {
	case c.Yes != nil && *c.Yes == report.WouldGo():
		return nil
	case c.Yes == nil && m.asksAtTerminal():
		writeCounts(m.Stderr, report)
		typed, err := m.ask(ctx, fmt.Sprintf("\nNothing was written yet: %s.\nType %s, the number of records that would go, to push release %s: ", doubts, number, report.Release))
		if err == nil && typed != number {
			err = errors.New("nothing was written: it was not confirmed")
		}
		return err
	}
	return hint.With(fmt.Errorf("nothing was written: %s", doubts),
		"if that is meant, give --yes %s, the number of records that would go; --dry-run shows more", number)
}

// askedAfter wraps a question so that finish is called before it.
func askedAfter(finish func(), question func(push.Report) error) func(push.Report) error {
	if question == nil {
		return nil
	}
	return func(r push.Report) error {
		finish()
		return question(r)
	}
}

// confirm asks whether the rollback is meant, and says what it does.
func (c *rollbackCommand) confirm(ctx context.Context, m *Main, report *push.Report) error {
	asked := fmt.Sprintf("roll back to release %s? %d records change, and %d of them go", report.Release, report.Records(), report.Removed())
	switch {
	case c.Yes:
		return nil
	case !m.asksAtTerminal():
		return hint.With(errors.New("nothing was written, since there is no terminal to ask at: "+asked), "give --yes if it is meant; --dry-run shows more")
	}
	writeCounts(m.Stderr, report)
	typed, err := m.ask(ctx, "\nNothing was written yet: "+asked+". Type yes: ")
	if err == nil && !strings.EqualFold(typed, "yes") {
		err = errors.New("nothing was written: it was not confirmed")
	}
	return err
}

// explain adds hints to the most common errors.
func (f *pushFlags) explain(err error) error {
	var newer *schema.NewerError
	var refused *os.SyscallError
	var name *net.DNSError
	var asked *url.Error
	var stranger x509.UnknownAuthorityError
	switch {
	case err == nil, hint.Of(err) != "":
		return err
	case throughProxy(err):
		return explainProxy(err)
	case errors.As(err, &name):
		return explainName(err, name, "--registry or REGEDGE_REGISTRY")
	case notValidNow(err):
		return explainNotValid(err, f.Registry)
	case errors.As(err, &stranger):
		return hint.With(err, "set SSL_CERT_FILE to the ca.crt that signed the certificate at %s", f.Registry)
	case errors.Is(err, libsql.ErrSilent), errors.Is(err, context.DeadlineExceeded):
		return hint.With(err, "does the primary's machine hang, or its disk? There: regedge doctor, and the log of regedge-primary@registry. Then run the same command again: what was written is whole, and it goes on from there")
	case heartbeat.Stops(err): // what it answered says neither this nor what to do
		return hint.With(fmt.Errorf("the registry's primary at %s is stopping, and takes no more calls", f.Registry), "when it runs again (systemctl status regedge-primary@registry; its log says why it stopped), run the same command again: what was written is whole, and it goes on from there")
	case libsql.OfDisk(err):
		return hint.With(err, "is the disk of the primary's machine full (df), or broken (dmesg)? There: regedge doctor. Then run the same command again: what was written is whole, and it goes on from there")
	case errors.Is(err, sqlite3.FULL), errors.Is(err, sqlite3.IOERR), errors.Is(err, syscall.ENOSPC):
		return hint.With(err, "is a disk full (df), that of --releases, of --primary-dir or of the registry file, or broken (dmesg)? Then run the same command again")
	case errors.Is(err, libsql.ErrAnswer):
		return hint.With(err, "does another service listen at %s, or a network's sign-in page? Set --registry or REGEDGE_REGISTRY", f.Registry)
	case errors.As(err, &refused):
		return hint.With(err, "is the registry's primary running at %s? Set --registry or REGEDGE_REGISTRY", f.Registry)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return hint.With(fmt.Errorf("the answer of %s broke off: %w", f.Registry, err), "did the primary end just now? See the log of regedge-primary@registry. Then run the same command again: what was written is whole, and it goes on from there")
	case errors.Is(err, fs.ErrNotExist):
		return hint.With(err, "regedge import makes a registry file")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, sqlite3.CANTOPEN), errors.Is(err, sqlite3.READONLY):
		return hint.With(err, "let the user that this runs as read and write the registry file, its folder and --releases: SQLite makes files beside it")
	case errors.Is(err, push.ErrUnfinished):
		return hint.With(err, "run the interrupted regedge import again")
	case errors.Is(err, push.ErrNotTaken):
		return hint.With(err, "give the --dir of the regedge primary that runs on this machine as --primary-dir")
	case errors.Is(err, sqld.ErrForeign):
		return hint.With(err, "push as that user, or as root")
	case errors.Is(err, push.ErrNoEarlier):
		return hint.With(err, "name one that is kept in --releases with --to")
	case errors.Is(err, push.ErrNoSnapshot):
		return hint.With(err, "give --releases of the machine that pushed it, or name one that is kept with --to")
	case errors.Is(err, libsql.ErrUnauthorized):
		return hint.With(err, "a token that may write is needed: regedge trust token registry. If it is one: is %s the registry's primary, not that of access, and not a replica?", f.Registry)
	case errors.Is(err, push.ErrTakenOver):
		return hint.With(err, "see which one should win, and run that again")
	case errors.As(err, &newer):
		return hint.With(err, "push with the newest regedge that was pushed with before")
	case errors.As(err, &asked):
		return hint.With(err, "what listens at %s does not answer as a registry's primary does: is it another service, should the address begin with http:// or https://, or did the primary end just now (its log)? Set --registry or REGEDGE_REGISTRY", f.Registry)
	}
	return err
}
