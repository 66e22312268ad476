package sqld

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
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
	make := func(t *testing.T, s *Server) {
		_, err := makeBase(s.Dir, takenSeed(s.Dir), nil)
		require.NoError(t, err)
	}
	take := func(t *testing.T, s *Server) {
		taken, err := s.takeSeed()
		require.NoError(t, err)
		require.True(t, taken)
	}
	place := func(t *testing.T, s *Server) {
		begin, err := s.placeBase()
		require.NoError(t, err)
		require.NotNil(t, begin)
	}
	for name, before := range map[string][]func(*testing.T, *Server){
		"nothing":              {},
		"the seed was taken":   {take},
		"the base was made":    {take, make},
		"it has its place":     {take, make, place},
		"the database is gone": {take, make, place, func(t *testing.T, s *Server) { require.NoError(t, s.discard()) }},
		"the base is half made": {take, make, func(t *testing.T, s *Server) {
			require.NoError(t, os.Remove(filepath.Join(s.Dir, baseInWork, baseAbout)))
		}},
		"it is of an earlier seed": {take, make, func(t *testing.T, s *Server) { require.NoError(t, os.Remove(takenSeed(s.Dir))); seedIn(t, s) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
			out := newOutput(t.Output())
			earlier := seedIn(t, s)
			require.NoError(t, s.placeSeed(out))
			first := requireBaseOf(t, s, earlier)
			require.EqualValues(t, 1, first.First)
			// Ten frames later.
			require.NoError(t, writeLog(primaryLog(s.Dir), beginning{first.Log, first.First + 10}))

			content := seedIn(t, s)
			for _, step := range before {
				step(t, s)
			}
			if seed, err := os.ReadFile(SeedFile(s.Dir)); err == nil {
				content = seed
			}
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

// TestABaseThatCannotBeMadeIsTriedOnce, and the seed is placed without it, and without the one before.
func TestABaseThatCannotBeMadeIsTriedOnce(t *testing.T) {
	log := &testkit.Log{}
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	seedIn(t, s)
	require.NoError(t, s.placeSeed(newOutput(log)))
	require.NoError(t, os.WriteFile(SeedFile(s.Dir), []byte("this is not a database, and too short to be one"), 0o600))
	_, err := s.takeSeed()
	require.NoError(t, err)
	s.baseOfSeed(newOutput(log), nil)
	require.NoError(t, s.placeSeed(newOutput(log)))
	require.Equal(t, 1, strings.Count(log.String(), "page by page, since it can't be compressed for them: it is not a database"))
	require.NoDirExists(t, filepath.Join(s.Dir, baseFolder))
	require.NoDirExists(t, filepath.Join(s.Dir, baseInWork))
	require.NoFileExists(t, primaryLog(s.Dir))
}

// TestALogWithoutItsBaseIsRemoved, but for one that sqld will begin anew by itself.
func TestALogWithoutItsBaseIsRemoved(t *testing.T) {
	for name, killed := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			log := &testkit.Log{}
			s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
			seedIn(t, s)
			require.NoError(t, s.placeSeed(newOutput(log)))
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
	content := seedIn(t, s)
	require.NoError(t, s.placeSeed(newOutput(t.Output())))
	b := requireBaseOf(t, s, content)
	data, err := os.ReadFile(filepath.Join(s.Dir, baseFolder, baseData))
	require.NoError(t, err)
	g := &gate{dir: s.Dir, output: newOutput(t.Output())}
	get := func(fields ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, basePath, nil)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		g.serveBase(w, r, "edge")
		return w
	}
	whole := get("If-None-Match", newLogID().tag())
	require.Equal(t, http.StatusOK, whole.Code)
	require.Equal(t, data, whole.Body.Bytes())
	require.Equal(t, baseType, whole.Header().Get("Content-Type"))
	require.Equal(t, b.digest(), whole.Header().Get("Repr-Digest"))
	require.Equal(t, "1", whole.Header().Get(firstField))
	require.Equal(t, http.StatusNotModified, get("If-None-Match", b.Log.tag()).Code)
	part := get("Range", "bytes=10-19")
	require.Equal(t, http.StatusPartialContent, part.Code)
	require.Equal(t, data[10:20], part.Body.Bytes())

	require.NoError(t, writeLog(primaryLog(s.Dir), beginning{newLogID(), 1}))
	require.Equal(t, http.StatusNotFound, get().Code, "another log began")
	require.NoError(t, writeLog(primaryLog(s.Dir), beginning{b.Log, 1}))
	require.Equal(t, http.StatusOK, get().Code)
	require.NoError(t, os.Remove(filepath.Join(s.Dir, baseFolder, baseData)))
	require.Equal(t, http.StatusInternalServerError, get().Code)
}

// fetcherOf returns a fetcher of a replica without anything, whose primary is a handler, and who wait for it.
func fetcherOf(t *testing.T, primary http.HandlerFunc) (*fetcher, *testkit.Log) {
	t.Helper()
	files := new(TLSFiles)
	var err error
	files.CA, files.Cert, files.Key, err = pki.Link(t.TempDir(), time.Now)
	require.NoError(t, err)
	config, err := files.load()
	require.NoError(t, err)
	web := httptest.NewUnstartedServer(primary)
	web.TLS, web.EnableHTTP2 = config, true
	web.Config.ErrorLog = nil
	web.StartTLS()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	at, err := url.Parse(web.URL)
	require.NoError(t, err)
	log := &testkit.Log{}
	f := newFetcher(&Config{Dir: t.TempDir(), TLS: files}, at, newOutput(log))
	f.answer, f.silence, f.again = 300*time.Millisecond, 300*time.Millisecond, 10*time.Millisecond
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
			may, err := f.mayFollow(t.Context())
			require.False(t, may)
			require.ErrorIs(t, err, errSaysNothing)
			require.NoFileExists(t, fetchedPath(f.dir))
		})
	}
}

// TestAReplicaFollowsALogWithoutABase: of a primary that has none, and of one that knows nothing of bases.
func TestAReplicaFollowsALogWithoutABase(t *testing.T) {
	for name, primary := range map[string]http.HandlerFunc{
		"none":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "none", http.StatusNotFound) },
		"unknown": func(w http.ResponseWriter, _ *http.Request) { refuse(w, permissionDenied, "not replication") },
		"failing": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "full", http.StatusInternalServerError) },
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := fetcherOf(t, primary)
			may, err := f.mayFollow(t.Context())
			require.NoError(t, err)
			require.True(t, may)
		})
	}
}

// TestAFetchIsTriedAgain after a pause, and once it is done nothing is followed or fetched any more.
func TestAFetchIsTriedAgain(t *testing.T) {
	content := []byte(strings.Repeat("a database ", 10_000))
	id := newLogID()
	good, asked := false, 0
	f, _ := fetcherOf(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
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
	require.Equal(t, 1, asked)

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
	require.Equal(t, 2, asked)
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

// TestWhoAsksForFramesOfTheBaseIsRefused, and who follows the log is not.
func TestWhoAsksForFramesOfTheBaseIsRefused(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	seedIn(t, s)
	require.NoError(t, s.placeSeed(newOutput(t.Output())))
	b, err := readBase(filepath.Join(s.Dir, baseFolder))
	require.NoError(t, err)
	b.First = 300
	require.NoError(t, b.write(filepath.Join(s.Dir, baseFolder)))
	g := &gate{dir: s.Dir, output: newOutput(t.Output())}
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
		"which log there is":     {asks(helloCall), false},
	} {
		t.Run(name, func(t *testing.T) {
			sent, err := io.ReadAll(c.request.Body)
			require.NoError(t, err)
			c.request.Body = io.NopCloser(strings.NewReader(string(sent)))
			require.Equal(t, c.refused, g.lacksBase(c.request))
			passed, err := io.ReadAll(c.request.Body)
			require.NoError(t, err)
			require.Equal(t, sent, passed)
		})
	}
	require.NoError(t, os.RemoveAll(filepath.Join(s.Dir, baseFolder)))
	require.False(t, g.lacksBase(asks(entries)), "sqld has all frames of a log without a base")
}
