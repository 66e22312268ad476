package sqld

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// A base is a compressed copy of a database that was handed over to a primary, as it was when its log began. A replica
// starts from it and follows the log from there, as PostgreSQL's do from a base backup. The primary makes it once, so
// that a new replica costs it no more than sending a file. Without a base, sqld writes the whole database into a log,
// keeps that as a snapshot as large as the database, and sends each replica its pages one by one.
type base struct {
	Log   logID  `json:"log"`         // the log that begins at it
	First uint64 `json:"first_frame"` // number of that log's first frame; 0 until the base has its place
	Bytes int64  `json:"bytes"`       // of the database
	SHA   []byte `json:"sha256"`      // of the compressed file
	Seed  string `json:"seed"`        // which file it was made of; see seedIdentity
}

// Names within a primary's directory, and within a base's folder.
const (
	baseFolder = "base"
	baseInWork = "base.part" // while it is made, and until its database is in place
	baseData   = "data.zst"
	baseAbout  = "about.json" // written last
)

// readBase returns the base in a folder. It fails where there is none that is whole.
func readBase(folder string) (b base, err error) {
	text, err := os.ReadFile(filepath.Join(folder, baseAbout))
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err == nil && len(b.SHA) != sha256.Size {
		err = fmt.Errorf("%s is incomplete", filepath.Join(folder, baseAbout))
	}
	return b, err
}

// errNoBase means that a log does not begin at a base.
var errNoBase = errors.New("the log does not begin at a base")

// currentBase returns a primary's base. It fails with errNoBase unless its log begins there.
func currentBase(dir string) (base, error) {
	folder := filepath.Join(dir, baseFolder)
	b, err := readBase(folder)
	if err == nil {
		_, err = os.Stat(filepath.Join(folder, baseData))
	}
	var log logID
	if err == nil {
		log, _, err = readLog(primaryLog(dir))
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && log != b.Log {
		return b, errNoBase
	}
	return b, err
}

// tag is the entity tag of the base of a log (RFC 9110, section 8.8.3).
func (id logID) tag() string { return `"` + id.String() + `"` }

// digest is the value of the field Repr-Digest (RFC 9530, section 3).
func (b base) digest() string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(b.SHA) + ":"
}

// errCopyEnds means that nobody waits for the copy any more.
var errCopyEnds = errors.New("the copy is not needed any more")

// makeBase makes a base of a seed, in a folder for work in progress, and returns its size. It stops with errCopyEnds once
// stop is closed.
func makeBase(dir, seed string, stop <-chan struct{}) (size int64, err error) {
	folder := filepath.Join(dir, baseInWork)
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	from, err := os.Open(seed)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	b := base{Log: newLogID()}
	if b.Bytes, b.Seed, err = checkSeed(from); err != nil {
		return 0, err
	}
	if size, b.SHA, err = compress(filepath.Join(folder, baseData), stoppable{from, stop}); err != nil {
		return 0, err
	}
	return size, b.write(folder)
}

// write stores the description of the base in its folder.
func (b base) write(folder string) error {
	about, err := json.Marshal(b)
	if err != nil {
		return err
	}
	part := filepath.Join(folder, baseAbout+".part")
	if err := writeSynced(part, about); err != nil {
		return err
	}
	return errors.Join(os.Rename(part, filepath.Join(folder, baseAbout)), syncFolder(folder))
}

// checkSeed returns the size of a seed, and an identity to tell it from others. It refuses a file that is not a
// database with sqld's page size.
func checkSeed(file *os.File) (bytes int64, identity string, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, "", err
	}
	header := make([]byte, 18)
	if _, err := file.ReadAt(header, 0); err != nil {
		return 0, "", err
	}
	switch {
	case string(header[:len(headerText)]) != headerText:
		return 0, "", errors.New("it is not a database")
	case binary.BigEndian.Uint16(header[16:]) != pageSize || info.Size()%pageSize != 0:
		return 0, "", fmt.Errorf("its pages are not of %d bytes", pageSize)
	}
	return info.Size(), seedIdentity(info), nil
}

// seedIdentity tells a seed from others, even after it was moved.
func seedIdentity(info os.FileInfo) string {
	return fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
}

// compress compresses a database into a file, and returns the size and hash of that.
func compress(path string, from io.Reader) (size int64, sha []byte, err error) {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	hash := sha256.New()
	encoder, err := zstd.NewWriter(io.MultiWriter(to, hash), zstd.WithWindowSize(baseWindow))
	if err != nil {
		return 0, nil, err
	}
	_, err = io.Copy(encoder, from)
	if err := errors.Join(err, encoder.Close()); err != nil {
		return 0, nil, err
	}
	size, err = to.Seek(0, io.SeekCurrent)
	return size, hash.Sum(nil), errors.Join(err, to.Sync())
}

// baseWindow is how far back a base may refer, in bytes. It bounds the memory of its readers.
const baseWindow = 4 << 20

// stoppable ends with errCopyEnds once stop is closed.
type stoppable struct {
	io.Reader
	stop <-chan struct{}
}

// Read implements io.Reader.
func (r stoppable) Read(p []byte) (int, error) {
	select {
	case <-r.stop:
		return 0, errCopyEnds
	default:
		return r.Reader.Read(p)
	}
}

// makeBaseOf makes the base of a seed, unless it was made before. An error is only logged: without a base sqld copies
// the database by itself.
func (s *Server) makeBaseOf(seed string, output *output, stop <-chan struct{}) {
	info, err := os.Stat(seed)
	if s.Link == nil || err != nil || s.unbased == seedIdentity(info) {
		return // nobody could fetch it, or there is nothing to copy, or it failed before
	}
	made, err := readBase(filepath.Join(s.Dir, baseInWork))
	if err != nil && seed == takenSeed(s.Dir) { // a start that was interrupted may have given it its place
		made, err = readBase(filepath.Join(s.Dir, baseFolder))
	}
	if err == nil && made.Seed == seedIdentity(info) {
		return
	}
	output.say(fmt.Sprintf("compressing the database for the replicas: %d MB", info.Size()>>20))
	began := time.Now()
	size, err := makeBase(s.Dir, seed, stop)
	switch {
	case err == nil:
		output.say(fmt.Sprintf("compressed it to %d MB in %s", size>>20, time.Since(began).Round(time.Second/10)))
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		output.say(fmt.Sprintf("the disk has no room for the compressed database: %v", err))
	case !errors.Is(err, errCopyEnds):
		s.unbased = seedIdentity(info)
		output.say(fmt.Sprintf("replicas copy the database page by page, since it can't be compressed for them: %v", err))
	}
}

// nextFrame is the number of the first frame of the next log. It goes on from the log before, since clients that have
// read from a replica ask for a state that is no older.
func (s *Server) nextFrame() uint64 {
	_, next, _ := readLog(primaryLog(s.Dir)) // 0 without a log
	if b, err := readBase(filepath.Join(s.Dir, baseFolder)); err == nil {
		next = max(next, b.First) // an interrupted start has removed that log
	}
	return max(next, 1)
}

// placeBase puts the base of the seed that was taken in its place, and returns where its log begins: at next, unless an
// interrupted start has already recorded another frame. Without a base, or without a gate to serve it, it returns nil.
func (s *Server) placeBase(next uint64) (*beginning, error) {
	info, err := os.Stat(takenSeed(s.Dir))
	if err != nil {
		return nil, err
	}
	inWork, place := filepath.Join(s.Dir, baseInWork), filepath.Join(s.Dir, baseFolder)
	if b, err := readBase(inWork); err == nil && b.Seed == seedIdentity(info) {
		b.First = next
		if err := errors.Join(b.write(inWork), os.RemoveAll(place)); err != nil {
			return nil, err
		}
		if err := errors.Join(os.Rename(inWork, place), syncFolder(s.Dir)); err != nil {
			return nil, err
		}
	}
	b, err := readBase(place)
	if err != nil || b.Seed != seedIdentity(info) || b.First == 0 || s.Link == nil {
		return nil, errors.Join(os.RemoveAll(place), os.RemoveAll(inWork))
	}
	return &beginning{b.Log, b.First}, nil
}

// checkBase removes a base if the log does not begin there any more: sqld begins another log after it was killed. It
// also removes a log whose base is lost or has no gate to serve it, since new replicas could not follow it; sqld then
// begins another one.
func (s *Server) checkBase(output *output) error {
	_, err := currentBase(s.Dir)
	killed := exists(sentinel(s.Dir))
	if err == nil && !killed && s.Link != nil {
		return nil
	}
	if err != nil && !errors.Is(err, errNoBase) && !killed {
		return fmt.Errorf("read the compressed database that replicas start from: %w", err)
	}
	for _, folder := range []string{baseFolder, baseInWork} {
		if err := os.RemoveAll(filepath.Join(s.Dir, folder)); err != nil {
			return err
		}
	}
	if log, _, err := readLog(primaryLog(s.Dir)); err != nil || !log.ours() || killed {
		return nil
	}
	output.say("the compressed database that replicas start from is lost: the log begins anew, and all replicas copy it page by page")
	database := filepath.Dir(File(s.Dir))
	return errors.Join(os.RemoveAll(filepath.Join(database, "snapshots")), os.RemoveAll(filepath.Join(database, "to_compact")),
		os.Remove(primaryLog(s.Dir)))
}

// sentinel is the path of a file that a primary has while it runs, and after it was killed.
func sentinel(dir string) string { return filepath.Join(filepath.Dir(File(dir)), ".sentinel") }

// removeLateSentinel removes the sentinel of a primary that stopped in order, if it is not the one that the primary ran
// with. sqld removes its sentinel when it closes the database. For a request that arrives afterwards it makes a new
// one: it looks for the keys of tokens in the database, which opens that, before it refuses the request. With such a
// sentinel the next start would take the primary for a killed one, and every replica would copy the database again. The
// sentinel stays if the log has more than it counts: then the process ended within a write that nobody waited for any
// more, which may be only in the database.
func removeLateSentinel(dir string, ranWith fs.FileInfo) error {
	left, err := os.Stat(sentinel(dir))
	if err != nil || os.SameFile(left, ranWith) && left.ModTime().Equal(ranWith.ModTime()) {
		return ignoreMissing(err)
	}
	if whole, err := endsWithACommit(primaryLog(dir)); err != nil || !whole {
		return err
	}
	return os.Remove(sentinel(dir))
}
