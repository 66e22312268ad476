package sqld

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	// fetchedName is the name, in a replica's directory, of a database while it is fetched.
	fetchedName = "fetched.part"
	// fetchReport is how often a fetch logs how far it is.
	fetchReport = 10 * time.Second
)

// fetcher brings a replica the base of its primary's log, unless the replica follows that log already.
type fetcher struct {
	dir     string // of the replica
	url     string
	tls     *TLSFiles
	output  *output
	traffic *Traffic
	asks    *http.Client   // asks on the connection that the replica follows on
	fetched chan beginning // receives the log of a base that lies at fetchedPath
	answer  time.Duration  // how long the primary may take for an answer
	silence time.Duration  // and between two parts of it
	again   time.Duration  // how long a fetch waits after one that failed
	pause   time.Duration  // and after a connection that failed

	turn   chan struct{} // holds an element while somebody asks or fetches
	done   bool          // a base was fetched, and the replica will be started again
	failed int           // how many fetches failed in a row
	// avoided is the address of a mirror's file that was not what the primary has.
	avoided string
}

// fetchPause is how long a fetch waits after one that failed, on a full disk for example. It doubles, at most
// fetchDoublings times, since each fetch costs the primary its share of the network.
const (
	fetchPause     = 10 * time.Second
	fetchDoublings = 5
)

// newFetcher makes the fetcher of a replica that reaches its primary by far.
func newFetcher(config *Config, primary *url.URL, far *http.Transport, output *output) *fetcher {
	at := url.URL{Scheme: "https", Host: primary.Host, Path: basePath}
	return &fetcher{
		dir: config.Dir, url: at.String(), tls: config.TLS, output: output, traffic: config.Traffic,
		asks: &http.Client{Transport: far}, fetched: make(chan beginning, 1), turn: make(chan struct{}, 1),
		answer: handshakeTimeout, silence: lostAfter, again: fetchPause, pause: resumePause,
	}
}

// fetchedPath is the path of a database while it is fetched.
func fetchedPath(dir string) string { return filepath.Join(dir, fetchedName) }

// errCopy means that the database could not be copied.
var errCopy = errors.New("can't copy the database")

// errSaysNothing means that the primary accepts connections but sends nothing.
var errSaysNothing = errors.New("it takes connections and says nothing")

// enter waits until nobody else asks or fetches. It reports false if the call is given up first: sqld asks again every
// few seconds, also while nothing answers.
func (f *fetcher) enter(call context.Context) bool {
	select {
	case f.turn <- struct{}{}:
		return true
	default:
	}
	select {
	case f.turn <- struct{}{}:
		return true
	case <-call.Done():
		return false
	}
}

func (f *fetcher) leave() { <-f.turn }

// mayFollow reports whether the replica can follow its primary's log: it follows the log already, or the log begins
// with an empty database. If the log begins at a base, it fetches that, announces it in fetched, and reports false. In
// doubt it returns an error, since sqld would remove the replica's database when it finds another log. An error is an
// errCopy, or says that the primary is not reached. It is called between enter and leave.
//
// It asks on the connection that the replica follows on. Where it takes longer to connect than sqld waits, as behind an
// address or a name server that does not answer, the next question finds that connection open.
func (f *fetcher) mayFollow(ctx context.Context) (bool, error) {
	if f.done {
		return false, nil
	}
	if f.failed > 0 {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(f.again << min(f.failed-1, fetchDoublings)):
		}
	}
	if may, err := f.ask(ctx); err != nil || may {
		return may, err
	}
	primary, err := f.client()
	if err != nil {
		return false, err
	}
	answer, err := f.open(ctx, primary, f.url, f.ownLog()...)
	if err != nil {
		return false, err
	}
	defer answer.Close()
	if !isBase(answer.Response) {
		return false, fmt.Errorf("%w: the primary answers %s", errCopy, answer.Status)
	}
	begin, err := f.fetch(ctx, primary, answer)
	if err != nil {
		f.failed++
		return false, errors.Join(fmt.Errorf("%w: %w", errCopy, err), ignoreMissing(os.Remove(fetchedPath(f.dir))))
	}
	f.done = true
	f.fetched <- begin
	return false, nil
}

// ask asks whether the replica can follow the log as it is. Of a base it takes the first byte.
func (f *fetcher) ask(ctx context.Context) (may bool, err error) {
	answer, err := f.open(ctx, f.asks, f.url, append(f.ownLog(), "Range", "bytes=0-0")...)
	if err != nil {
		return false, err
	}
	defer answer.Close()
	switch {
	case followable(answer.Response):
		f.failed = 0
		return true, nil
	case isBase(answer.Response):
		return false, nil
	}
	return false, fmt.Errorf("%w: the primary answers %s", errCopy, answer.Status)
}

// isBase reports whether an answer has a base, or its beginning.
func isBase(answer *http.Response) bool {
	return answer.StatusCode/100 == 2 && answer.Header.Get("Content-Type") == baseType
}

// wait waits for the end of a fetch whose context has ended: it has a file open.
func (f *fetcher) wait() {
	f.enter(context.Background())
	f.leave()
}

// followable reports whether an answer says that there is no base to fetch: the replica follows the log, or the log has
// none, or the primary knows no bases and refuses the call (permission denied) or does not know it (unimplemented).
func followable(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusNotModified, http.StatusNotFound:
		return true
	case http.StatusOK:
		code := answer.Header.Get("Grpc-Status")
		return code == strconv.Itoa(permissionDenied) || code == strconv.Itoa(unimplemented)
	}
	return false
}

func (f *fetcher) client() (*http.Client, error) {
	config, err := f.tls.load()
	if err != nil {
		return nil, err
	}
	protocols := onlyHTTP2() // for primaries of earlier versions
	protocols.SetHTTP1(true)
	config.NextProtos = fasterFirst
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, Protocols: protocols, DialContext: f.traffic.dial,
		DisableKeepAlives: true, IdleConnTimeout: linkIdle, // CloseIdleConnections misses one whose stream has just ended
	}}, nil
}

// ownLog is the field of a request that tells a primary which log the replica follows, if any.
func (f *fetcher) ownLog() []string {
	if own, err := readPosition(position(f.dir)); err == nil && whole(f.dir) {
		return []string{"If-None-Match", own.tag()}
	}
	return nil
}

// fetch writes the database of a primary's answer to a file, and verifies it.
func (f *fetcher) fetch(ctx context.Context, primary *http.Client, answer *stream) (begin beginning, err error) {
	if err := begin.ID.UnmarshalText([]byte(strings.Trim(answer.Header.Get("Etag"), `"`))); err != nil {
		return begin, err
	}
	if begin.First, err = strconv.ParseUint(answer.Header.Get(firstField), 10, 64); err != nil || begin.First == 0 {
		return begin, errors.New("the primary does not say where the log begins")
	}
	size, err := strconv.ParseInt(answer.Header.Get(bytesField), 10, 64)
	if err != nil || size <= 0 {
		return begin, errors.New("the primary does not say how large the database is")
	}
	if err := f.checkRoom(size); err != nil {
		return begin, err
	}
	began := time.Now()
	to, err := os.OpenFile(fetchedPath(f.dir), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return begin, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	from := f.download(ctx, primary, answer)
	defer from.close()
	hash := sha256.New()
	progress := &counted{Reader: io.TeeReader(from, hash), all: answer.ContentLength, output: f.output, said: began}
	decoder, err := zstd.NewReader(progress, zstd.WithDecoderMaxWindow(baseWindow), zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true))
	if err != nil {
		return begin, err
	}
	defer decoder.Close()
	defer from.end() // the decoder reads ahead, and its Close waits for that
	// Until its hash is verified, what a mirror sends may be anything, of any size. When the decoder reports the end,
	// all of it was read.
	written, err := io.Copy(&synced{file: to}, io.LimitReader(decoder, size+1))
	switch {
	case err != nil:
		return begin, from.doubt(err)
	case written > size:
		return begin, from.doubt(fmt.Errorf("what arrived has more than the %d bytes of the primary's database", size))
	case written < size:
		return begin, from.doubt(fmt.Errorf("what arrived has %d bytes, and the primary's database has %d", written, size))
	}
	if got := (base{SHA: hash.Sum(nil)}).digest(); got != answer.Header.Get("Repr-Digest") {
		return begin, from.doubt(errors.New("what arrived is not what the primary sent: its hash is another"))
	}
	if err := to.Sync(); err != nil {
		return begin, err
	}
	f.output.say(fmt.Sprintf("copied the database: %d MB in %s", size>>20, time.Since(began).Round(time.Second/10)))
	return begin, nil
}

// checkRoom refuses a database for which the disk has no room: a fetch that fills the disk would take room from others,
// too.
func (f *fetcher) checkRoom(size int64) error {
	free, err := freeSpace(f.dir)
	if err == nil && free < size+spareBytes {
		return fmt.Errorf("the disk has %d MB free, and the database needs %d MB", free>>20, (size+spareBytes)>>20)
	}
	return nil
}

// spareBytes of a replica's disk are left to others.
const spareBytes = 64 << 20

// synced writes to a file, and syncs it now and then, so that no sync takes long.
type synced struct {
	file  *os.File
	since int
}

// syncedBytes are written between two syncs.
const syncedBytes = 256 << 20

// Write implements io.Writer.
func (s *synced) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if s.since += n; err == nil && s.since >= syncedBytes {
		s.since = 0
		err = s.file.Sync()
	}
	return n, err
}

// counted says now and then how much was read.
type counted struct {
	io.Reader
	done, all int64
	output    *output
	said      time.Time
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.done += int64(n)
	if now := time.Now(); now.Sub(c.said) >= fetchReport {
		c.said = now
		c.output.say(fmt.Sprintf("copied %d of %d MB (%d%%)", c.done>>20, c.all>>20, 100*c.done/max(c.all, 1)))
	}
	return n, err
}

// placeFetched makes a fetched base the replica's database. The server must not run. If it is interrupted, the replica
// has no whole database, and fetches the base again.
func (s *Server) placeFetched(begin beginning) error {
	database := filepath.Dir(File(s.Dir))
	if err := errors.Join(s.discard(), os.MkdirAll(database, 0o700)); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(fetchedPath(s.Dir), File(s.Dir)), syncFolder(database)); err != nil {
		return err
	}
	return errors.Join(writePosition(position(s.Dir), begin), syncFolder(database))
}
