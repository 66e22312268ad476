package importer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/schema/importer/load"
	"regedge/schema/importer/source"
)

// Config says what to import and where to.
type Config struct {
	// Registry is the path of the registry database, made when missing.
	Registry string
	// Files are the files to read, Stdin ("-") among them at most once; Pincodes those
	// that must be pincode directories. Their order does not matter.
	Files, Pincodes []string
	// AsOf is the date of the sources, YYYY-MM-DD, at most a day after that of Now, UTC:
	// the day of Now when empty.
	AsOf string
	// Rejects is the path of the rejects file; empty for none. An earlier one is
	// overwritten, any other file is refused.
	Rejects string
	// MaxRejected, if set, is how many rows may be rejected. With more the registry stays as it was.
	MaxRejected *int64
	// Progress, if set, is called from time to time in the goroutine of Run.
	Progress func(Progress)
	// Waiting, if set, is called with the display name of a file that yields nothing for some
	// seconds, such as a pipe without a writer: once per file, in any goroutine.
	Waiting func(file string)

	Stdin  io.Reader        // read for "-"
	Now    func() time.Time // time.Now when nil
	Random io.Reader        // crypto/rand when nil
}

// Progress tells how far a run is.
type Progress struct {
	// Bytes/Total is the fraction of the work that is done. Total is the stored size of the
	// files, without standard input.
	Bytes, Total int64
	Rows         int64  // read so far
	Written      int64  // records merged into the database so far
	File         string // last read
}

// Run imports the files of a configuration. It reads and sorts them, in temporary files beside
// the registry that take about as much room as the uncompressed sources, and writes each
// table in key order. On an error, or when ctx ends, the registry is as it was before, unless
// the report names a release.
func Run(ctx context.Context, config Config) (Report, error) {
	r, err := newRun(ctx, config)
	if err != nil {
		return Report{}, err
	}
	defer r.close()
	if err := r.inspect(); err != nil {
		return Report{}, withHint(err)
	}
	if r.tally.rejects, err = openRejects(ctx, config.Rejects, r.taken(), r.config.Waiting); err != nil {
		return Report{}, err
	}
	if err := r.openStore(ctx); err != nil {
		return Report{}, &RegistryError{withHint(err)}
	}
	if err := r.tally.rejects.begin(); err != nil {
		return Report{}, err
	}
	err = r.importAll(ctx)
	err = cmp.Or(err, r.tally.rejects.close())
	for i := range r.tally.files {
		r.tally.files[i].CutOff, r.tally.files[i].Doubtful = r.sources[i].CutOff, r.sources[i].Doubtful
	}
	r.report.Files = r.tally.files
	r.report.Elapsed = r.config.Now().Sub(r.started)
	return r.report, withHint(err)
}

// RegistryError is an error of opening or making the registry, not of the files to import.
type RegistryError struct{ Err error }

func (e *RegistryError) Error() string { return e.Err.Error() }
func (e *RegistryError) Unwrap() error { return e.Err }

// run is one call of Run.
type run struct {
	ctx     context.Context // of Run, until stop
	stop    func()          // ends the reading of the files
	config  Config
	started time.Time
	sources []*source.File // in the order of the configuration
	offices *source.Offices
	intake  *intake
	tally   tally

	store  *load.Store
	report Report
}

var errTwiceStdin = errors.New("standard input (-) can be read only once")

func newRun(ctx context.Context, config Config) (*run, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Random == nil {
		config.Random = rand.Reader
	}
	if config.Waiting == nil {
		config.Waiting = func(string) {}
	}
	r := &run{
		config: config, started: config.Now(), offices: source.NewOffices(),
		tally: tally{progress: config.Progress},
	}
	r.intake = newIntake(r)
	if config.AsOf == "" {
		r.config.AsOf = r.started.UTC().Format(time.DateOnly)
	} else if err := checkAsOf(config.AsOf, r.started); err != nil {
		return nil, err
	}
	if strings.Contains(config.Registry, "://") {
		return nil, fmt.Errorf("registry %s: an import writes a file: name one, then push it", config.Registry)
	}
	for i, name := range slices.Concat(config.Pincodes, config.Files) {
		file := source.NewFile(i, name, r.intake.send, r.offices)
		called := name
		if name == source.Stdin {
			called = "the standard input"
		}
		file.Waiting = func() { r.config.Waiting(called) }
		r.sources = append(r.sources, file)
	}
	if len(r.sources) == 0 {
		return nil, errors.New("no files to import")
	}
	r.ctx, r.stop = context.WithCancel(ctx)
	return r, nil
}

// checkAsOf refuses a date in the future, since no later import could replace its data until
// then. Tomorrow is allowed: it has begun in some time zone.
func checkAsOf(day string, now time.Time) error {
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return fmt.Errorf("as-of date %q: want YYYY-MM-DD", day)
	}
	if tomorrow := now.UTC().AddDate(0, 0, 1).Format(time.DateOnly); day > tomorrow {
		return fmt.Errorf("as-of date %s is yet to come: name the day of the files, or set this machine's clock", day)
	}
	return nil
}

// inspect opens every file and recognises its format, so that a wrong file ends the run
// before anything is written.
func (r *run) inspect() error {
	stdin := 0
	for i, s := range r.sources {
		if s.Name == source.Stdin {
			if stdin++; stdin > 1 {
				return errTwiceStdin
			}
		}
		err := r.open(i)
		if !s.Once {
			s.Close()
		}
		if err == nil && i < len(r.config.Pincodes) && s.Format != source.PincodeFormat {
			err = fmt.Errorf("is not a pincode directory but %s", s.Format.Name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		report := newFileReport(s.Name, s.Format.Name)
		report.Lacking = s.Lacking
		r.tally.files = append(r.tally.files, report)
		r.tally.present.Total += s.Size
	}
	r.tally.positions = make([]int64, len(r.sources))
	return nil
}

// taken lists the files that a run reads or changes, besides its rejects file.
func (r *run) taken() (list []string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", load.DraftSuffix} {
		list = append(list, r.config.Registry+suffix)
	}
	for _, s := range r.sources {
		if s.Name != source.Stdin {
			list = append(list, s.Name)
		}
	}
	return list
}

func (r *run) open(i int) error {
	return r.sources[i].Open(r.ctx, r.config.Stdin, r.config.AsOf)
}

func (r *run) openStore(ctx context.Context) (err error) {
	r.store, err = load.Open(ctx, r.config.Registry, r.started.Unix())
	return err
}

func (r *run) close() {
	r.stop()
	for _, s := range r.sources {
		s.Close()
	}
	if r.tally.rejects != nil {
		r.tally.rejects.close()
	}
	if r.store != nil {
		r.store.Close()
	}
}

// finish turns the written records into the next release.
func (r *run) finish() error {
	for i := range r.tally.files {
		if err := r.tally.files[i].check(); err != nil {
			return err
		}
	}
	if err := r.checkRejected(); err != nil {
		return err
	}
	id, err := load.NewReleaseID(r.started, r.config.Random)
	if err != nil {
		return err
	}
	done, held, err := r.store.Finish(id)
	if done {
		r.report.Release = id
	}
	r.report.Held = held
	return err
}

// checkRejected fails if more rows were rejected than the configuration allows.
func (r *run) checkRejected() error {
	rejected := (&Report{Files: r.tally.files}).Total().Rejected
	most := r.config.MaxRejected
	if most == nil || sum(rejected) <= *most {
		return nil
	}
	return fmt.Errorf("%w: %d, of at most %d (%s)", ErrTooManyRejected, sum(rejected), *most, reasons(rejected))
}

// ErrTooManyRejected is the error of a run with more rejects than Config.MaxRejected.
var ErrTooManyRejected = errors.New("too many rows were rejected")

// withHint adds what the operator can do about an error of the machine.
func withHint(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: make room on the disk and run the same import again", err)
	case errors.Is(err, sqlite3.IOERR):
		return fmt.Errorf("%w: is the disk full, or broken (dmesg)? Then run the same import again", err)
	case errors.Is(err, sqlite3.NOTADB):
		return fmt.Errorf("%w: name another file", err)
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("%w: another process is writing to the registry: wait for it; if there is none, the file system has no locks", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the file is cut off: fetch it again and run the same import again", err)
	case errors.Is(err, source.ErrDamaged):
		return fmt.Errorf("%w: the file is damaged: fetch it again and run the same import again", err)
	}
	return err
}
