package sqld

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
)

// seedIn puts a seed in a primary's directory, and returns its content.
func seedIn(t *testing.T, s *Server) []byte {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(SeedFile(s.Dir)), 0o700))
	made, err := sqlite3.Open(SeedFile(s.Dir))
	require.NoError(t, err)
	require.NoError(t, made.Exec("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (randomblob(50000))"))
	require.NoError(t, made.Close())
	content, err := os.ReadFile(SeedFile(s.Dir))
	require.NoError(t, err)
	return content
}

// placed puts a seed in the place of a primary's database, and returns its content.
func placed(t *testing.T, s *Server) []byte {
	t.Helper()
	content := seedIn(t, s)
	taken, err := s.takeSeed(newOutput(t.Output()), nil)
	require.NoError(t, err)
	require.True(t, taken)
	require.NoError(t, s.placeSeed(newOutput(t.Output())))
	return content
}

func requireBaseOf(t *testing.T, s *Server, content []byte) base {
	t.Helper()
	b, err := currentBase(s.Dir)
	require.NoError(t, err)
	file, err := os.Open(filepath.Join(s.Dir, baseFolder, baseData))
	require.NoError(t, err)
	defer file.Close()
	decoder, err := zstd.NewReader(file)
	require.NoError(t, err)
	defer decoder.Close()
	got, err := io.ReadAll(decoder)
	require.NoError(t, err)
	require.Equal(t, content, got)
	placed, err := os.ReadFile(File(s.Dir))
	require.NoError(t, err)
	require.Equal(t, content, placed)
	require.True(t, b.Log.ours())
	return b
}

// TestASeedAndItsBaseArePlacedTogether, whatever an interrupted start or hand-over has left.
func TestASeedAndItsBaseArePlacedTogether(t *testing.T) {
	take := func(t *testing.T, s *Server) {
		taken, err := s.takeSeed(newOutput(t.Output()), nil)
		require.NoError(t, err)
		require.True(t, taken)
	}
	place := func(t *testing.T, s *Server) {
		begin, err := s.placeBase(s.nextFrame())
		require.NoError(t, err)
		require.NotNil(t, begin)
	}
	lose := func(names ...string) func(*testing.T, *Server) {
		return func(t *testing.T, s *Server) {
			require.NoError(t, os.RemoveAll(filepath.Join(append([]string{s.Dir}, names...)...)))
		}
	}
	for name, before := range map[string][]func(*testing.T, *Server){
		"the seed was taken":       {take},
		"the base has its place":   {take, place},
		"the database is gone":     {take, place, func(t *testing.T, s *Server) { require.NoError(t, s.discard()) }},
		"the base is half made":    {take, lose(baseInWork, baseAbout)},
		"there is no base":         {take, lose(baseInWork)},
		"it is of an earlier seed": {take, func(t *testing.T, s *Server) { require.NoError(t, os.Remove(takenSeed(s.Dir))); seedIn(t, s) }, take},
		"another came later":       {take, place, func(t *testing.T, s *Server) { require.NoError(t, s.discard()); seedIn(t, s) }, take},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
			out := newOutput(t.Output())
			earlier := placed(t, s)
			first := requireBaseOf(t, s, earlier)
			require.EqualValues(t, 1, first.First)
			// Ten frames later.
			require.NoError(t, writeLog(primaryLog(s.Dir), beginning{first.Log, first.First + 10}))

			seedIn(t, s)
			for _, step := range before {
				step(t, s)
			}
			content, err := os.ReadFile(takenSeed(s.Dir))
			require.NoError(t, err)
			require.NoError(t, s.placeSeed(out))
			second := requireBaseOf(t, s, content)
			require.NotEqual(t, first.Log, second.Log)
			require.EqualValues(t, 11, second.First, "frames are numbered on")
			require.NoFileExists(t, takenSeed(s.Dir))
			require.NoDirExists(t, filepath.Join(s.Dir, baseInWork))
			require.NoError(t, s.placeSeed(out), "the next start changes nothing")
			require.Equal(t, second, requireBaseOf(t, s, content))
		})
	}
}

// whenSaid is a log that calls do once, when words are in it.
type whenSaid struct {
	words string
	do    func()
}

// Write implements io.Writer.
func (w *whenSaid) Write(p []byte) (int, error) {
	if do := w.do; do != nil && strings.Contains(string(p), w.words) {
		w.do = nil
		do()
	}
	return len(p), nil
}

// TestASeedCanBeWithdrawnWhileItIsCompressed, or replaced by another push's, which is then compressed itself.
func TestASeedCanBeWithdrawnWhileItIsCompressed(t *testing.T) {
	for name, meanwhile := range map[string]func(s *Server, stop chan struct{}){
		"withdrawn": func(s *Server, _ chan struct{}) { require.NoError(t, Seed(s.Dir).Withdraw()) },
		"replaced":  func(s *Server, _ chan struct{}) { require.NoError(t, Seed(s.Dir).Withdraw()); seedIn(t, s) },
		"stopped":   func(_ *Server, stop chan struct{}) { close(stop) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
			seedIn(t, s)
			stop := make(chan struct{})
			taken, err := s.takeSeed(newOutput(&whenSaid{"compressing", func() { meanwhile(s, stop) }}), stop)
			require.NoError(t, err)
			require.False(t, taken)
			require.NoFileExists(t, takenSeed(s.Dir))
			content, err := os.ReadFile(SeedFile(s.Dir))
			if name == "withdrawn" {
				require.ErrorIs(t, err, os.ErrNotExist)
				return
			}
			require.NoError(t, err)
			taken, err = s.takeSeed(newOutput(t.Output()), nil)
			require.NoError(t, err)
			require.True(t, taken)
			require.NoError(t, s.placeSeed(newOutput(t.Output())))
			requireBaseOf(t, s, content)
		})
	}
}

// TestTheBaseOfAWithdrawnSeedDoesNotStay: it takes a third of the registry's room, and the next push would wait ten
// minutes for a primary that seems to take its file.
func TestTheBaseOfAWithdrawnSeedDoesNotStay(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	seedIn(t, s)
	look := func(log io.Writer) {
		taken, err := s.takeSeed(newOutput(log), nil)
		require.NoError(t, err)
		require.False(t, taken)
	}
	look(&whenSaid{"compressed it to", func() { require.NoError(t, Seed(s.Dir).Withdraw()) }})
	look(t.Output())
	require.False(t, Seed(s.Dir).Taking())
}

// TestASeedThatComesAgainHasALogOfItsOwn: replicas are further in the one before.
func TestASeedThatComesAgainHasALogOfItsOwn(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	content := placed(t, s)
	first := requireBaseOf(t, s, content)
	info, err := os.Stat(File(s.Dir))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(SeedFile(s.Dir), content, 0o600))
	require.NoError(t, os.Chtimes(SeedFile(s.Dir), info.ModTime(), info.ModTime()))
	taken, err := s.takeSeed(newOutput(t.Output()), nil)
	require.NoError(t, err)
	require.True(t, taken)
	require.NoError(t, s.placeSeed(newOutput(t.Output())))
	second := requireBaseOf(t, s, content)
	require.Equal(t, first.Seed, second.Seed, "the case")
	require.NotEqual(t, first.Log, second.Log)
}

// TestABaseThatCannotBeMadeIsTriedOnce, and the seed is placed without it, and without the one before.
func TestABaseThatCannotBeMadeIsTriedOnce(t *testing.T) {
	log := &testkit.Log{}
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	placed(t, s)
	require.NoError(t, os.WriteFile(SeedFile(s.Dir), []byte("this is not a database, and too short to be one"), 0o600))
	_, err := s.takeSeed(newOutput(log), nil)
	require.NoError(t, err)
	require.NoError(t, s.placeSeed(newOutput(log)))
	require.Equal(t, 1, strings.Count(log.String(), "page by page, since it can't be compressed for them: it is not a database"))
	require.NoDirExists(t, filepath.Join(s.Dir, baseFolder))
	require.NoDirExists(t, filepath.Join(s.Dir, baseInWork))
	require.NoFileExists(t, primaryLog(s.Dir))
}

// TestADatabaseOfOtherPagesHasNoBase: replicas would follow the log with pages that do not fit theirs.
func TestADatabaseOfOtherPagesHasNoBase(t *testing.T) {
	dir := t.TempDir()
	seed := filepath.Join(dir, "seed")
	made, err := sqlite3.Open(seed)
	require.NoError(t, err)
	require.NoError(t, made.Exec("PRAGMA page_size = 8192; CREATE TABLE t (a)"))
	require.NoError(t, made.Close())
	cut := filepath.Join(dir, "cut")
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	content := seedIn(t, s)
	require.NoError(t, os.WriteFile(cut, content[:len(content)-1], 0o600))
	for _, path := range []string{seed, cut} {
		_, err := makeBase(dir, path, nil)
		require.ErrorContains(t, err, "its pages are not of 4096 bytes")
		require.NoDirExists(t, filepath.Join(dir, baseInWork))
	}
}

// TestABaseOfWhichSomethingIsMissingIsNone: without its hash no replica would take it, and another log is not its.
func TestABaseOfWhichSomethingIsMissingIsNone(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	b := requireBaseOf(t, s, placed(t, s))
	about := filepath.Join(s.Dir, baseFolder, baseAbout)
	for _, sha := range [][]byte{nil, b.SHA[1:]} {
		incomplete := b
		incomplete.SHA = sha
		require.NoError(t, incomplete.write(filepath.Dir(about)))
		_, err := currentBase(s.Dir)
		require.ErrorContains(t, err, "about.json is incomplete")
	}
	require.NoError(t, b.write(filepath.Dir(about)))
	data := filepath.Join(s.Dir, baseFolder, baseData)
	require.NoError(t, os.Rename(data, data+".away"))
	_, err := currentBase(s.Dir)
	require.ErrorIs(t, err, errNoBase)
	require.NoError(t, os.Rename(data+".away", data))
	log, err := os.ReadFile(primaryLog(s.Dir))
	require.NoError(t, err)
	log[0] ^= 1
	require.NoError(t, os.WriteFile(primaryLog(s.Dir), log, 0o600))
	_, err = currentBase(s.Dir)
	require.ErrorContains(t, err, "is not a log")
}

// TestALogWithoutItsBaseIsRemoved, but for one that sqld will begin anew by itself.
func TestALogWithoutItsBaseIsRemoved(t *testing.T) {
	for name, killed := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			log := &testkit.Log{}
			s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
			placed(t, s)
			snapshot := filepath.Join(filepath.Dir(File(s.Dir)), "snapshots", "one.snap")
			require.NoError(t, os.MkdirAll(filepath.Dir(snapshot), 0o700))
			require.NoError(t, os.WriteFile(snapshot, nil, 0o600))
			if killed {
				require.NoError(t, os.WriteFile(sentinel(s.Dir), nil, 0o600))
				require.NoError(t, s.placeSeed(newOutput(log)))
				require.NoDirExists(t, filepath.Join(s.Dir, baseFolder))
				require.FileExists(t, primaryLog(s.Dir))
				require.FileExists(t, snapshot)
				return
			}
			require.NoError(t, s.placeSeed(newOutput(log)))
			require.FileExists(t, snapshot)
			require.NoError(t, os.RemoveAll(filepath.Join(s.Dir, baseFolder)))
			require.NoError(t, s.placeSeed(newOutput(log)))
			require.NoFileExists(t, primaryLog(s.Dir))
			require.NoFileExists(t, snapshot)
			require.FileExists(t, File(s.Dir))
			require.NoError(t, s.placeSeed(newOutput(log)))
			require.Equal(t, 1, strings.Count(log.String(), "is lost"))
		})
	}
}

// TestOnlyALateSentinelIsRemoved: the one that a primary ran with is left for its next start, since the primary did not close its
// database, and so is one beside a log that was ended within a write.
func TestOnlyALateSentinelIsRemoved(t *testing.T) {
	dir := t.TempDir()
	path, other := sentinel(dir), filepath.Join(dir, "other")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, writeLog(primaryLog(dir), beginning{newLogID(), 1}))
	at := func(path string, at time.Time) fs.FileInfo {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info
	}
	began, late := time.Now().Add(-time.Hour), time.Now()

	ranWith := at(path, began)
	require.NoError(t, removeLateSentinel(dir, ranWith))
	require.FileExists(t, path, "it is the same")
	at(path, late) // a file made anew may have the number of the one before
	require.NoError(t, removeLateSentinel(dir, ranWith))
	require.NoFileExists(t, path)
	require.NoError(t, removeLateSentinel(dir, ranWith), "there is none")

	ranWith = at(other, late)
	at(path, late)
	require.NoError(t, removeLateSentinel(dir, ranWith))
	require.NoFileExists(t, path, "and it may be made within the same moment")

	at(path, late)
	log, err := os.ReadFile(primaryLog(dir))
	require.NoError(t, err)
	uncounted := append(bytes.Clone(log), make([]byte, frameHeader+pageSize)...)
	require.NoError(t, os.WriteFile(primaryLog(dir), uncounted, 0o600))
	require.NoError(t, removeLateSentinel(dir, ranWith))
	require.FileExists(t, path, "a frame is not counted")
	uncounted[40] = 1
	require.NoError(t, os.WriteFile(primaryLog(dir), uncounted, 0o600))
	require.NoError(t, removeLateSentinel(dir, ranWith))
	require.NoFileExists(t, path)

	at(path, late)
	require.NoError(t, os.Remove(primaryLog(dir)))
	require.Error(t, removeLateSentinel(dir, ranWith))
	require.FileExists(t, path, "nobody knows the log")
}

// TestNoBaseIsMadeForAServerThatStops.
func TestNoBaseIsMadeForAServerThatStops(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	seedIn(t, s)
	stopped := make(chan struct{})
	close(stopped)
	_, err := makeBase(s.Dir, SeedFile(s.Dir), stopped)
	require.ErrorIs(t, err, errCopyEnds)
	require.NoDirExists(t, filepath.Join(s.Dir, baseInWork))
}

// TestAGateServesTheBaseOfItsLog, to those that don't follow that log.
func TestAGateServesTheBaseOfItsLog(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	content := placed(t, s)
	b := requireBaseOf(t, s, content)
	data, err := os.ReadFile(filepath.Join(s.Dir, baseFolder, baseData))
	require.NoError(t, err)
	g := &gate{dir: s.Dir, output: newOutput(t.Output()), follows: make(map[string]bool)}
	get := func(fields ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, basePath, nil)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		g.serveBase(w, r, "edge", "serial")
		return w
	}
	whole := get("If-None-Match", newLogID().tag())
	require.Equal(t, http.StatusOK, whole.Code)
	require.Equal(t, data, whole.Body.Bytes())
	require.Equal(t, baseType, whole.Header().Get("Content-Type"))
	require.Equal(t, b.digest(), whole.Header().Get("Repr-Digest"))
	require.Equal(t, "1", whole.Header().Get(firstField))
	require.Equal(t, strconv.Itoa(len(content)), whole.Header().Get(bytesField))
	require.Empty(t, g.follows)
	require.Equal(t, http.StatusNotModified, get("If-None-Match", b.Log.tag()).Code)
	require.Equal(t, map[string]bool{"serial": true}, g.follows)
	part := get("Range", "bytes=10-19")
	require.Equal(t, http.StatusPartialContent, part.Code)
	require.Equal(t, data[10:20], part.Body.Bytes())

	require.NoError(t, writeLog(primaryLog(s.Dir), beginning{newLogID(), 1}))
	require.Equal(t, http.StatusNotFound, get().Code, "another log began")
	require.NoError(t, writeLog(primaryLog(s.Dir), beginning{b.Log, 1}))
	require.Equal(t, http.StatusOK, get().Code)
	about := filepath.Join(s.Dir, baseFolder, baseAbout)
	require.NoError(t, os.WriteFile(about, []byte("{"), 0o600))
	require.Equal(t, http.StatusServiceUnavailable, get().Code)
	require.NoError(t, os.Remove(about))
	require.Equal(t, http.StatusNotFound, get().Code)
}

// TestAReplicaFetchesABaseByHTTP1, which costs the primary a third of HTTP/2. Other clients, and other primaries, know HTTP/2 alone.
func TestAReplicaFetchesABaseByHTTP1(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	content := placed(t, s)
	g := &gate{dir: s.Dir, output: newOutput(t.Output()), follows: make(map[string]bool), calls: make(map[string]int), link: &tls.Config{}}
	byGate := func(web *httptest.Server) { web.Config = g.server(web.TLS) }
	f, _ := fetcherOf(t, nil, byGate)
	near, err := f.client()
	require.NoError(t, err)
	config, err := f.tls.load()
	require.NoError(t, err)
	only2 := &http.Client{Transport: &http.Transport{Protocols: onlyHTTP2(), TLSClientConfig: config.Clone()}}
	defer only2.CloseIdleConnections()
	usual := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: config.Clone()}}
	defer usual.CloseIdleConnections()
	for client, protocol := range map[*http.Client]int{near: 1, only2: 2, usual: 2} {
		answer, err := client.Get(f.url)
		require.NoError(t, err)
		require.Equal(t, protocol, answer.ProtoMajor)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, errors.Join(err, answer.Body.Close()))
		require.EqualValues(t, 200, answer.StatusCode)
	}
	refused, err := near.Post(strings.TrimSuffix(f.url, basePath)+helloCall, "application/grpc", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, refused.Body.Close())
	require.Equal(t, strconv.Itoa(permissionDenied), refused.Header.Get("Grpc-Status"), "the log is followed by HTTP/2")
	require.True(t, refused.Close)

	earlier, _ := fetcherOf(t, nil, byGate, func(web *httptest.Server) { web.Config.Protocols, web.TLS.GetConfigForClient = onlyHTTP2(), nil })
	for _, f := range []*fetcher{f, earlier} {
		may, err := f.mayFollow(t.Context())
		require.NoError(t, err)
		require.False(t, may)
		got, err := os.ReadFile(fetchedPath(f.dir))
		require.NoError(t, err)
		require.Equal(t, content, got)
	}
}

// deadlines notes until when a client has to read, and to have sent its body.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// TestNobodyHoldsAGateByHTTP1: neither who reads nothing of a base, nor who sends no end of a body.
func TestNobodyHoldsAGateByHTTP1(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	placed(t, s)
	g := &gate{dir: s.Dir, output: newOutput(t.Output()), follows: make(map[string]bool), calls: make(map[string]int), link: &tls.Config{}}
	w, r := &deadlines{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, basePath, nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{SerialNumber: big.NewInt(7)}}}
	g.ServeHTTP(w, r.WithContext(context.WithValue(t.Context(), connectionKey{}, g.connect())))
	require.Equal(t, http.StatusOK, w.Code)
	for limit, end := range map[time.Duration]time.Time{stuckTimeout: w.write, handshakeTimeout: w.read} {
		require.Positive(t, time.Until(end))
		require.LessOrEqual(t, time.Until(end), limit)
	}
}

// fetcherOf returns a fetcher of a replica without anything, whose primary is a handler, and who wait for it.
func fetcherOf(t *testing.T, primary http.HandlerFunc, change ...func(*httptest.Server)) (*fetcher, *testkit.Log) {
	t.Helper()
	files := new(TLSFiles)
	var err error
	files.CA, files.Cert, files.Key, err = pki.Link(t.TempDir())
	require.NoError(t, err)
	config, err := files.load()
	require.NoError(t, err)
	web := httptest.NewUnstartedServer(primary)
	web.TLS, web.EnableHTTP2 = config, true
	web.Config.ErrorLog = nil
	for _, c := range change {
		c(web)
	}
	web.StartTLS()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	at, err := url.Parse(web.URL)
	require.NoError(t, err)
	log := &testkit.Log{}
	near, err := files.load()
	require.NoError(t, err)
	far := &http.Transport{Protocols: onlyHTTP2(), TLSClientConfig: near}
	t.Cleanup(far.CloseIdleConnections)
	f := newFetcher(&Config{Dir: t.TempDir(), TLS: files}, at, far, newOutput(log))
	f.answer, f.silence, f.again, f.pause = time.Minute, time.Minute, 10*time.Millisecond, time.Millisecond
	return f, log
}

// TestAFetchEndsWhenThePrimaryHangs, before its answer and in the middle of it.
func TestAFetchEndsWhenThePrimaryHangs(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"before its answer": func(http.ResponseWriter) {},
		"in the middle": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", baseType)
			w.Header().Set("Etag", newLogID().tag())
			w.Header().Set(firstField, "1")
			w.Header().Set(bytesField, "10000000")
			encoder, _ := zstd.NewWriter(w, zstd.WithWindowSize(baseWindow))
			_, _ = encoder.Write(make([]byte, 1<<20))
			_ = encoder.Flush()
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := fetcherOf(t, func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				<-r.Context().Done()
			})
			f.answer, f.silence = 300*time.Millisecond, 300*time.Millisecond
			may, err := f.mayFollow(t.Context())
			require.False(t, may)
			require.ErrorIs(t, err, errSaysNothing)
			require.NoFileExists(t, fetchedPath(f.dir))
		})
	}
}

// TestADatabaseThatTakesTooMuchMemoryIsNotFetched: a replica's machine answers lookups meanwhile.
func TestADatabaseThatTakesTooMuchMemoryIsNotFetched(t *testing.T) {
	f, _ := fetcherOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", baseType)
		w.Header().Set("Etag", newLogID().tag())
		w.Header().Set(firstField, "1")
		w.Header().Set(bytesField, strconv.Itoa(3*baseWindow))
		encoder, _ := zstd.NewWriter(w, zstd.WithWindowSize(2*baseWindow))
		_, _ = encoder.Write(make([]byte, 3*baseWindow))
		_ = encoder.Close()
	})
	_, err := f.mayFollow(t.Context())
	require.ErrorIs(t, err, errCopy)
	require.ErrorIs(t, err, zstd.ErrWindowSizeExceeded)
	require.NoFileExists(t, fetchedPath(f.dir))
}

// TestAReplicaFollowsWhatHasNoOtherBase: of a primary that has none, and of one that knows nothing of bases. Whatever is in
// doubt is not followed, since sqld would remove the database that it has.
func TestAReplicaFollowsWhatHasNoOtherBase(t *testing.T) {
	for name, c := range map[string]struct {
		primary http.HandlerFunc
		may     bool
		because string
	}{
		"none":        {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "none", http.StatusNotFound) }, true, ""},
		"the same":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, true, ""},
		"refused":     {func(w http.ResponseWriter, _ *http.Request) { refuse(w, permissionDenied, "not replication") }, true, ""},
		"unknown":     {func(w http.ResponseWriter, _ *http.Request) { refuse(w, unimplemented, "") }, true, ""},
		"too many":    {func(w http.ResponseWriter, _ *http.Request) { refuse(w, resourceExhausted, "") }, false, "200 OK"},
		"unreadable":  {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) }, false, "503"},
		"another one": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, false, "200 OK"},
		"ended":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "stream error"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := fetcherOf(t, c.primary)
			may, err := f.mayFollow(t.Context())
			require.Equal(t, c.may, may)
			if c.because == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.because)
		})
	}
}

// TestABaseThatIsNotDescribedIsNotFetched: no log reaches a position before the first frame, for one.
func TestABaseThatIsNotDescribedIsNotFetched(t *testing.T) {
	for name, c := range map[string]struct{ field, value, because string }{
		"no log":            {"Etag", "", "32 digits"},
		"a longer log":      {"Etag", `"` + strings.Repeat("0", 34) + `"`, "32 digits"},
		"no frame":          {firstField, "", "where the log begins"},
		"before all frames": {firstField, "0", "where the log begins"},
		"no size":           {bytesField, "", "how large the database is"},
		"nothing":           {bytesField, "0", "how large the database is"},
	} {
		t.Run(name, func(t *testing.T) {
			f, log := fetcherOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", baseType)
				w.Header().Set("Etag", newLogID().tag())
				w.Header().Set(firstField, "1")
				w.Header().Set(bytesField, "4096")
				w.Header().Set(c.field, c.value)
				_, _ = w.Write([]byte("what is not read"))
			})
			_, err := f.mayFollow(t.Context())
			require.ErrorIs(t, err, errCopy)
			require.ErrorContains(t, err, c.because)
			require.NotContains(t, log.String(), "copying")
		})
	}
}

// TestADatabaseWithoutRoomIsNotFetched, and each failure makes the next pause longer, but for the last ones.
func TestADatabaseWithoutRoomIsNotFetched(t *testing.T) {
	f, log := fetcherOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", baseType)
		w.Header().Set("Etag", newLogID().tag())
		w.Header().Set(firstField, "1")
		w.Header().Set(bytesField, strconv.FormatInt(1<<60, 10))
		_, _ = w.Write([]byte("what is not read"))
	})
	f.again = 20 * time.Millisecond
	for n := range fetchDoublings {
		began := time.Now()
		_, err := f.mayFollow(t.Context())
		require.ErrorIs(t, err, errCopy)
		require.ErrorContains(t, err, "MB free, and the database needs 1099511627840 MB")
		require.GreaterOrEqual(t, time.Since(began), f.again*time.Duration(1<<n/2))
	}
	require.NotContains(t, log.String(), "copying")
	require.NoFileExists(t, fetchedPath(f.dir))
}

// TestAFetchIsTriedAgain after a pause, and once it is done nothing is followed or fetched any more.
func TestAFetchIsTriedAgain(t *testing.T) {
	content := []byte(strings.Repeat("a database ", 10_000))
	id := newLogID()
	good, fetched := false, 0
	f, _ := fetcherOf(t, func(w http.ResponseWriter, r *http.Request) {
		if !asksOnly(r) {
			fetched++
		}
		file := filepath.Join(t.TempDir(), "data")
		_, sha, err := compress(file, strings.NewReader(string(content)))
		if err != nil || r.Header.Get("If-None-Match") != "" {
			http.Error(w, "unexpected", http.StatusTeapot)
			return
		}
		if !good {
			sha[0]++
		}
		w.Header().Set("Content-Type", baseType)
		w.Header().Set("Etag", id.tag())
		w.Header().Set(firstField, "77")
		w.Header().Set(bytesField, strconv.Itoa(len(content)))
		w.Header().Set("Repr-Digest", base{SHA: sha}.digest())
		http.ServeFile(w, r, file)
	})
	may, err := f.mayFollow(t.Context())
	require.False(t, may)
	require.ErrorIs(t, err, errCopy)
	require.ErrorContains(t, err, "its hash is another")
	require.NoFileExists(t, fetchedPath(f.dir))

	f.again = time.Hour
	ended, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	_, err = f.mayFollow(ended)
	require.True(t, errors.Is(err, context.DeadlineExceeded), "it waits: %v", err)
	require.Equal(t, 1, fetched)

	good, f.again = true, time.Millisecond
	may, err = f.mayFollow(t.Context())
	require.NoError(t, err)
	require.False(t, may)
	require.Equal(t, beginning{id, 77}, <-f.fetched)
	got, err := os.ReadFile(fetchedPath(f.dir))
	require.NoError(t, err)
	require.Equal(t, content, got)
	may, err = f.mayFollow(t.Context())
	require.NoError(t, err)
	require.False(t, may, "the server is about to be started again")
	require.Equal(t, 2, fetched)
}

// TestAFetchedDatabaseIsWholeWithItsPosition: an interruption before leaves one that the next start removes.
func TestAFetchedDatabaseIsWholeWithItsPosition(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Primary: "https://127.0.0.1:1"}}
	require.NoError(t, os.WriteFile(fetchedPath(s.Dir), []byte("content"), 0o600))
	id := newLogID()
	require.NoError(t, s.placeFetched(beginning{id, 42}))
	require.True(t, whole(s.Dir))
	own, err := readPosition(position(s.Dir))
	require.NoError(t, err)
	require.Equal(t, id, own)
	at, err := os.ReadFile(position(s.Dir))
	require.NoError(t, err)
	require.Equal(t, append(id[:], 41, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), at)
	require.NoError(t, s.prepareDir(newOutput(t.Output())))
	require.FileExists(t, File(s.Dir))

	require.NoError(t, os.Remove(position(s.Dir)))
	require.NoError(t, os.WriteFile(fetchedPath(s.Dir), []byte("half"), 0o600))
	require.NoError(t, s.prepareDir(newOutput(t.Output())))
	require.NoFileExists(t, File(s.Dir))
	require.NoFileExists(t, fetchedPath(s.Dir))
}

// TestWhoAsksForFramesOfTheBaseIsRefused; a replica that follows the log is not.
func TestWhoAsksForFramesOfTheBaseIsRefused(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	placed(t, s)
	b, err := readBase(filepath.Join(s.Dir, baseFolder))
	require.NoError(t, err)
	b.First = 300
	require.NoError(t, b.write(filepath.Join(s.Dir, baseFolder)))
	g := &gate{dir: s.Dir, output: newOutput(t.Output()), follows: make(map[string]bool)}
	g.follows["serial"] = true
	asks := func(path string, offset ...byte) *http.Request {
		call := append([]byte{0, 0, 0, 0, byte(len(offset))}, offset...)
		return httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(call)))
	}
	const entries, snapshot = "/wal_log.ReplicationLog/LogEntries", "/wal_log.ReplicationLog/Snapshot"
	for name, c := range map[string]struct {
		request *http.Request
		refused bool
	}{
		"from the beginning":     {asks(entries), true},
		"a snapshot of it":       {asks(snapshot), true},
		"the last before":        {asks(entries, 8, 0xab, 2), true},
		"the first":              {asks(entries, 8, 0xac, 2), false},
		"the first, with a kind": {asks(snapshot, 8, 0xac, 2, 16, 1), false},
		"a later one":            {asks(entries, 8, 0xac, 0x82, 1), false},
		"which log there is":     {asks(helloCall), true},
	} {
		t.Run(name, func(t *testing.T) {
			sent, err := io.ReadAll(c.request.Body)
			require.NoError(t, err)
			c.request.Body = io.NopCloser(strings.NewReader(string(sent)))
			require.Equal(t, c.refused, g.lacksBase(c.request, "new"))
			if c.request.URL.Path == helloCall {
				require.False(t, g.lacksBase(c.request, "serial"), "it has said that it follows this log")
			}
			passed, err := io.ReadAll(c.request.Body)
			require.NoError(t, err)
			require.Equal(t, sent, passed)
		})
	}
	require.NoError(t, os.RemoveAll(filepath.Join(s.Dir, baseFolder)))
	require.False(t, g.lacksBase(asks(entries), "new"), "sqld has all frames of a log without a base")
	require.False(t, g.lacksBase(asks(helloCall), "new"))
}

// TestRoomIsLeftToOthersOfAReplicasDisk: a database that would fill it to its last bytes is not fetched.
func TestRoomIsLeftToOthersOfAReplicasDisk(t *testing.T) {
	f := &fetcher{dir: t.TempDir()}
	require.Eventually(t, func() bool { // what others write and remove meanwhile counts, too
		free, err := freeSpace(f.dir)
		require.NoError(t, err)
		if free < 2*spareBytes {
			t.Skip("the disk is nearly full")
		}
		return f.checkRoom(free-spareBytes/2) != nil && f.checkRoom(free-2*spareBytes) == nil
	}, time.Minute, time.Millisecond)
}

// TestAReplicaWithoutAWholeDatabaseFollowsNoLog: its primary would not send it the base that it lacks.
func TestAReplicaWithoutAWholeDatabaseFollowsNoLog(t *testing.T) {
	asked := make(chan string, 1)
	f, _ := fetcherOf(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("If-None-Match")
		w.WriteHeader(http.StatusNotModified)
	})
	follows := func() string {
		t.Helper()
		may, err := f.mayFollow(t.Context())
		require.NoError(t, err)
		require.True(t, may)
		return <-asked
	}
	write := func(path string) { require.NoError(t, os.WriteFile(path, []byte("content"), 0o600)) }
	own := beginning{newLogID(), 7}
	require.NoError(t, os.MkdirAll(filepath.Dir(File(f.dir)), 0o700))
	require.Empty(t, follows())
	require.NoError(t, writePosition(position(f.dir), own))
	require.Empty(t, follows(), "the database is lost")
	write(File(f.dir))
	require.Equal(t, own.ID.tag(), follows())
	write(File(f.dir) + "-shm")
	require.Empty(t, follows(), "the write-ahead log is lost")
	write(File(f.dir) + "-wal")
	require.Equal(t, own.ID.tag(), follows())
}

// TestABaseThatCannotBeReadLetsNobodyFollow: sqld would have a replica copy page by page, which its log can't give.
func TestABaseThatCannotBeReadLetsNobodyFollow(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	placed(t, s)
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, baseFolder, baseAbout), []byte("{"), 0o600))
	g := &gate{dir: s.Dir, output: newOutput(t.Output()), follows: map[string]bool{"known": true}}
	hello := httptest.NewRequest(http.MethodPost, helloCall, nil)
	require.True(t, g.lacksBase(hello, "new"))
	require.False(t, g.lacksBase(hello, "known"))
}

// TestAReplicaThatHasOneFrameMoreIsAhead: sqld would send it another frame of that number.
func TestAReplicaThatHasOneFrameMoreIsAhead(t *testing.T) {
	g := &gate{dir: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Dir(primaryLog(g.dir)), 0o700))
	require.NoError(t, writeLog(primaryLog(g.dir), beginning{newLogID(), 7}))
	for next, ahead := range map[byte]bool{6: false, 7: false, 8: true} {
		call := strings.NewReader(string([]byte{0, 0, 0, 0, 2, 8, next}))
		require.Equal(t, ahead, g.isBehind(httptest.NewRequest(http.MethodPost, "/wal_log.ReplicationLog/LogEntries", call)), next)
	}
}
