package sqld

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// logSettle is how long the server has to write what it has got, before the log is emptied.
const logSettle = 500 * time.Millisecond

// Variables for tests.
var (
	// logPause is the time between two looks at the write-ahead log of a replica.
	logPause = 10 * time.Second
	// logLimit is how large the log may stay, in bytes.
	logLimit int64 = 64 << 20
)

// errLogInUse means that the log can't be emptied now, since somebody reads or writes it.
var errLogInUse = errors.New("the write-ahead log is in use")

// keepLogShort empties the replica's write-ahead log when it is large. The server writes what it copies in transactions
// as large as the primary's, and a whole database in one. While an edge has the database open, SQLite keeps the log's
// file at its largest size, which once was as much as the registry itself.
func (s *Server) keepLogShort(r *run) {
	look := time.NewTicker(logPause)
	defer look.Stop()
	said := "" // the error that was logged last
	for {
		select {
		case <-r.ended:
			return
		case <-look.C:
		}
		switch freed, err := r.emptyLog(File(s.Dir), logLimit); {
		case err == nil && freed > 0:
			r.output.say(fmt.Sprintf("emptied the write-ahead log: %d MB of disk are free again", freed>>20))
			said = ""
		case err != nil && !errors.Is(err, errLogInUse) && err.Error() != said:
			said = err.Error()
			r.output.say("can't empty the write-ahead log: " + said)
		}
	}
}

// emptyLog empties the log of the server's database, if it is larger than limit, and returns how many bytes that freed.
// Others may read and write the database meanwhile. An error wraps errLogInUse, or comes from SQLite or the file
// system.
func (r *run) emptyLog(path string, limit int64) (freed int64, err error) {
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() <= limit {
		return 0, nil // without a log there is nothing to empty
	}
	l, err := openLog(path)
	if err != nil {
		return 0, busy(err)
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.copy(); err != nil {
		return 0, err
	}
	// What the log held must be on the disk before the log is gone; the server may not have waited for that.
	if err := l.database.Sync(); err != nil {
		return 0, err
	}
	// A server that has to wait 100 ms to write takes its database for damaged, and copies it anew. A file system takes
	// longer than that to free some gigabytes (0.5 s for 3 GB).
	if !r.relay.hold() {
		return 0, errLogInUse
	}
	defer r.relay.release()
	time.Sleep(logSettle)
	if err := l.copy(); err != nil || r.hasEnded() {
		return 0, errors.Join(err, errLogInUse)
	}
	if _, _, err := l.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE); err != nil {
		return 0, busy(err)
	}
	return log.Size(), nil
}

// hasEnded reports whether the process has ended: another one may run by now.
func (r *run) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// sharedLog is a database that another process uses, with its log and the log's index.
type sharedLog struct {
	database, log, index *os.File
	conn                 *sqlite3.Conn // waits for no lock, since the server might wait for it meanwhile
}

func openLog(path string) (l *sharedLog, err error) {
	l = &sharedLog{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	files := []struct {
		path string
		file **os.File
	}{{path, &l.database}, {path + "-wal", &l.log}, {path + "-shm", &l.index}}
	for _, f := range files {
		if *f.file, err = os.Open(f.path); err != nil {
			return l, err
		}
	}
	if l.conn, err = sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE); err != nil {
		return l, err
	}
	// When the last connection closes it would remove the log by its name, which may be another file by then.
	if _, err := l.conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return l, err
	}
	if err := l.conn.BusyTimeout(0); err != nil {
		return l, err
	}
	// The first statement that reads opens the log.
	if err := l.conn.Exec("SELECT count(*) FROM sqlite_schema"); err != nil {
		return l, err
	}
	// The server may have replaced all three files meanwhile, and the connection may have opened old and new ones. A
	// file that was open all the time can't be mistaken for another.
	for _, f := range files {
		if same, err := isAt(*f.file, f.path); err != nil || !same {
			return l, errors.Join(errLogInUse, err)
		}
	}
	return l, nil
}

// close closes the connection first: while the other files are open, no new file can be mistaken for them.
func (l *sharedLog) close() (err error) {
	if l.conn != nil {
		err = l.conn.Close()
	}
	for _, f := range []*os.File{l.database, l.log, l.index} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// copy copies into the database what it lacks of the log, without a lock that the server would wait for. It returns nil
// once the database has all of it.
func (l *sharedLog) copy() error {
	frames, copied, err := l.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	if err == nil && copied < frames {
		return errLogInUse
	}
	return busy(err)
}

// isAt reports whether a path names an open file.
func isAt(file *os.File, path string) (bool, error) {
	open, err := file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(open, now), err
}

// busy turns errors that say that others use the database into errLogInUse.
func busy(err error) error {
	if errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.LOCKED) {
		return errLogInUse
	}
	return err
}
