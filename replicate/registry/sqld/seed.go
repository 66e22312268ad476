package sqld

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// seedPause is how often a primary looks for a seed.
	seedPause  = 500 * time.Millisecond
	seedFolder = "seed"
	seedName   = "data"
)

// Errors of Seed.
var (
	// ErrNoPrimary means that no primary of regedge has ever run in the directory.
	ErrNoPrimary = errors.New("no regedge primary has run there")
	// ErrForeign means that the primary's directory belongs to another user, and that this process can't
	// give that user a file.
	ErrForeign = errors.New("the directory belongs to another user")
)

// Seed hands a whole database over to the primary whose directory it names: a closed file, without a log, that replaces
// the primary's own. The directory may belong to another user, who is not trusted with the rights of this process: no
// link that lies there may lead out of it, and the file is complete before that user can touch it.
type Seed string

// SeedFile is the path at which a primary in dir looks for a seed, and from which it takes it.
func SeedFile(dir string) string { return filepath.Join(dir, seedFolder, seedName) }

// Check finds out early whether Put can work. An error wraps ErrNoPrimary or ErrForeign, or comes from the file system.
func (s Seed) Check() error {
	owner, err := s.owner()
	if err != nil {
		return err
	}
	if own := os.Geteuid(); own != 0 && own != int(owner.Uid) {
		return s.foreign(owner)
	}
	return nil
}

// owner is the user that the primary runs as, who made the lock file.
func (s Seed) owner() (*syscall.Stat_t, error) {
	if _, err := os.Stat(string(s)); err != nil {
		return nil, err
	}
	lock := filepath.Join(string(s), lockName)
	info, err := os.Lstat(lock)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", string(s), ErrNoPrimary)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %w", string(s), ErrForeign)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", lock)
	}
	return info.Sys().(*syscall.Stat_t), nil
}

func (s Seed) foreign(owner *syscall.Stat_t) error {
	name := strconv.Itoa(int(owner.Uid))
	if known, err := user.LookupId(name); err == nil {
		name = known.Username
	}
	return fmt.Errorf("%s: %w, %s", string(s), ErrForeign, name)
}

// Put hands the file over and removes it. The new file belongs to the primary's user, and is complete from the first
// moment. If it is on another file system, copied copies it; otherwise it is moved. An error wraps ErrNoPrimary or
// ErrForeign, or comes from the file system or copied.
func (s Seed) Put(file string, copied func(to io.Writer, from *os.File) error) error {
	owner, err := s.owner()
	if err != nil {
		return err
	}
	folder, place, err := s.openFolder(owner)
	if err != nil {
		return err
	}
	defer folder.Close()
	defer place.Close()
	if err := give(owner, func(uid, gid int) error { return os.Lchown(file, uid, gid) }); err != nil {
		return err
	}
	err = unix.Renameat(unix.AT_FDCWD, file, int(place.Fd()), seedName)
	if !errors.Is(err, unix.EXDEV) {
		return err
	}
	if err := putCopy(folder, owner, file, copied); err != nil {
		return errors.Join(err, ignoreMissing(folder.Remove(seedPart)))
	}
	_ = os.Remove(file) // the primary has it by now
	return nil
}

// openFolder opens the folder of the seed, and makes it if there is none. It removes what a killed push
// left there.
func (s Seed) openFolder(owner *syscall.Stat_t) (folder *os.Root, place *os.File, err error) {
	dir, err := os.OpenRoot(string(s))
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	if err := dir.Mkdir(seedFolder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, err
	}
	if folder, err = dir.OpenRoot(seedFolder); err != nil {
		return nil, nil, err
	}
	if place, err = folder.Open("."); err == nil {
		err = errors.Join(give(owner, place.Chown), ignoreMissing(folder.Remove(seedPart)))
	}
	if err != nil {
		return nil, nil, errors.Join(err, folder.Close(), closeFile(place))
	}
	return folder, place, nil
}

func closeFile(file *os.File) error {
	if file == nil {
		return nil
	}
	return file.Close()
}

// give makes something the owner's by calling chown, unless it already is.
func give(owner *syscall.Stat_t, chown func(uid, gid int) error) error {
	if os.Geteuid() == int(owner.Uid) {
		return nil
	}
	return chown(int(owner.Uid), int(owner.Gid))
}

// seedPart is a seed while it is copied.
const seedPart = seedName + ".part"

func putCopy(folder *os.Root, owner *syscall.Stat_t, file string, copied func(io.Writer, *os.File) error) (err error) {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := folder.OpenFile(seedPart, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = copied(to, from)
	if err == nil {
		err = give(owner, to.Chown)
	}
	if err == nil {
		err = to.Sync()
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	return folder.Rename(seedPart, seedName)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Waits reports whether a seed lies there that the primary has not taken.
func (s Seed) Waits() bool { return exists(SeedFile(string(s))) }

// Taking reports whether the primary is compressing the seed that lies there, which it does before it takes it.
func (s Seed) Taking() bool { return exists(filepath.Join(string(s), baseInWork)) }

// Withdraw removes a seed that was not taken. It returns fs.ErrNotExist if the primary has taken it.
func (s Seed) Withdraw() error {
	dir, err := os.OpenRoot(string(s))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Remove(filepath.Join(seedFolder, seedName))
}

// awaitSeed restarts a primary once it has taken a seed. Its replicas then find another log, and copy the new database
// from its beginning. An unusable seed is logged once, and the old database stays.
func (s *Server) awaitSeed(r *run) {
	ticks := time.NewTicker(seedPause)
	defer ticks.Stop()
	said := ""
	for {
		select {
		case <-r.ended:
			return
		case <-ticks.C:
		}
		r.taking.Lock()
		taken, err := s.takeSeed(r.output, r.ended)
		r.taking.Unlock()
		switch {
		case taken:
			// Nothing of the old database is needed any more, so the process is not asked to close it.
			s.restart(r, "a whole database was handed over: the primary is started again with it", os.Kill)
			return
		case err != nil && err.Error() != said:
			said = err.Error()
			r.output.say(refusal(err))
		}
	}
}

func refusal(err error) string {
	return fmt.Sprintf("a database was handed over that can't be taken, and the one before stays: %v", err)
}

// takenSeed is where a seed lies from the moment when it is certain to become the database.
func takenSeed(dir string) string { return filepath.Join(dir, "seed.taken") }

// takeSeed takes the seed, if there is one that sqld will be able to write to, once its base is made: until then the
// push can withdraw it. It takes none once stop is closed. If there is no seed, it removes the base of one that was
// withdrawn, so that the next push need not wait for it.
func (s *Server) takeSeed(output *output, stop <-chan struct{}) (bool, error) {
	seed := SeedFile(s.Dir)
	if !exists(seed) {
		_ = os.RemoveAll(filepath.Join(s.Dir, baseInWork)) // the next look tries again
		return false, nil
	}
	if err := makeReady(seed); err != nil {
		return false, err
	}
	before, err := os.Stat(seed)
	if err != nil {
		return false, ignoreMissing(err)
	}
	s.makeBaseOf(seed, output, stop)
	s.uploadFirst(seed, seedIdentity(before), output, stop)
	now, err := os.Stat(seed)
	if err != nil || seedIdentity(now) != seedIdentity(before) {
		return false, ignoreMissing(err) // withdrawn, or replaced by that of another push
	}
	select {
	case <-stop:
		return false, nil
	default:
	}
	if err := os.Rename(seed, takenSeed(s.Dir)); err != nil {
		return false, ignoreMissing(err)
	}
	return true, syncFolder(s.Dir)
}

// makeReady checks that a seed can be written, and puts it into WAL mode.
func makeReady(seed string) error {
	file, err := os.OpenFile(seed, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(intoWAL(file), file.Close())
}

// intoWAL puts a closed database into WAL mode (https://sqlite.org/fileformat.html, section 1.3). sqld would do that
// too, but not in its log: its replicas would then take their databases for ones with a rollback journal, and lock
// them.
func intoWAL(file *os.File) error {
	const versions, rollback, wal = 18, 1, 2 // where the header has them, to write and to read, and their values
	header := make([]byte, versions+2)
	if _, err := file.ReadAt(header, 0); err != nil || string(header[:len(headerText)]) != headerText {
		return nil // sqld says what is wrong with it
	}
	if header[versions] != rollback || header[versions+1] != rollback {
		return nil
	}
	if _, err := file.WriteAt([]byte{wal, wal}, versions); err != nil {
		return err
	}
	return file.Sync()
}

// placeSeed replaces a primary's database by the seed that was taken, and places its base. If it is interrupted, the
// next start goes on. The server must not run.
func (s *Server) placeSeed(output *output) error {
	if !exists(takenSeed(s.Dir)) {
		return s.checkBase(output)
	}
	output.say("taking over the database that was handed over")
	next := s.nextFrame()
	begin, err := s.placeBase(next)
	if err != nil {
		return fmt.Errorf("place the compressed copy of a seed: %w", err)
	}
	database := filepath.Dir(File(s.Dir))
	if err := errors.Join(s.discard(), os.MkdirAll(database, 0o700)); err != nil {
		return fmt.Errorf("remove the database that a seed replaces: %w", err)
	}
	if begin == nil { // the previous database may have left no room for a base
		s.makeBaseOf(takenSeed(s.Dir), output, nil)
		if begin, err = s.placeBase(next); err != nil {
			return fmt.Errorf("place the compressed copy of a seed: %w", err)
		}
	}
	if begin != nil {
		if err := writeLog(primaryLog(s.Dir), *begin); err != nil {
			return fmt.Errorf("begin the log of a seed: %w", err)
		}
	}
	// No log may begin twice, so the seed is moved away before sqld writes to the log.
	return errors.Join(syncFolder(database), os.Rename(takenSeed(s.Dir), File(s.Dir)),
		syncFolder(database), syncFolder(filepath.Dir(database)), syncFolder(s.Dir))
}
