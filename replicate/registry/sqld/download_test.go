package sqld

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// offered is a base that a primary and a mirror send.
type offered struct {
	database, compressed []byte
	about                http.Header
	log                  logID

	mu     sync.Mutex
	ranges []string // of the primary's requests
	sent   atomic.Int64
	// harm, if set, sends an answer of the primary in its own way, and reports that it has.
	harm func(w http.ResponseWriter, r *http.Request) bool
}

// prepare compresses 20 MB that can't be made smaller.
func prepare() (o *offered, err error) {
	o = &offered{database: make([]byte, 20<<20), about: http.Header{}}
	_, _ = rand.Read(o.database)
	dir, err := os.MkdirTemp("", "offered")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "data")
	_, sha, err := compress(path, bytes.NewReader(o.database))
	if err != nil {
		return nil, err
	}
	o.about.Set("Content-Type", baseType)
	o.about.Set("Repr-Digest", base{SHA: sha}.digest())
	o.about.Set(firstField, "7")
	o.about.Set(bytesField, strconv.Itoa(len(o.database)))
	o.compressed, err = os.ReadFile(path)
	return o, err
}

// prepared is what all offer, each in a log of its own. Nobody changes its bytes.
var prepared = sync.OnceValues(prepare)

func offer(t *testing.T) *offered {
	t.Helper()
	shared, err := prepared()
	require.NoError(t, err)
	o := &offered{database: shared.database, compressed: shared.compressed, about: shared.about.Clone(), log: newLogID()}
	o.about.Set("Etag", o.log.tag())
	return o
}

// ServeHTTP is the primary.
func (o *offered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, values := range o.about {
		w.Header()[name] = values
	}
	if asksOnly(r) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.compressed))
		return
	}
	o.mu.Lock()
	o.ranges = append(o.ranges, r.Header.Get("Range"))
	o.mu.Unlock()
	if o.harm == nil || !o.harm(w, r) {
		http.ServeContent(&countedAnswer{w, &o.sent}, r, "", time.Time{}, bytes.NewReader(o.compressed))
	}
}

// asksOnly reports whether a request of a replica fetches nothing.
func asksOnly(r *http.Request) bool { return r.Header.Get("Range") == "bytes=0-0" }

// countedAnswer counts the bytes of an answer.
type countedAnswer struct {
	http.ResponseWriter
	sent *atomic.Int64
}

// Write implements http.ResponseWriter.
func (w *countedAnswer) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.sent.Add(int64(n))
	return n, err
}

// mirror starts a mirror, which the primary names.
func (o *offered) mirror(t *testing.T, serve http.HandlerFunc) *httptest.Server {
	web := httptest.NewServer(serve)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	o.about.Set("Content-Location", web.URL+"/bases/name.zst")
	return web
}

func requireFetched(t *testing.T, f *fetcher, o *offered) {
	t.Helper()
	may, err := f.mayFollow(t.Context())
	require.NoError(t, err)
	require.False(t, may)
	require.Equal(t, beginning{o.log, 7}, <-f.fetched)
	got, err := os.ReadFile(fetchedPath(f.dir))
	require.NoError(t, err)
	require.True(t, bytes.Equal(o.database, got))
}

// half sends the first half of the base, and reports its end at once.
func (o *offered) half(w http.ResponseWriter) {
	w.Header().Set("Content-Length", strconv.Itoa(len(o.compressed)))
	_, _ = w.Write(o.compressed[:len(o.compressed)/2])
	_ = http.NewResponseController(w).Flush()
}

// drip sends some of the other half, byte by byte, for some seconds.
func (o *offered) drip(w http.ResponseWriter) {
	for n := range 1000 {
		at := len(o.compressed)/2 + n
		if _, err := w.Write(o.compressed[at : at+1]); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		time.Sleep(10 * time.Millisecond)
	}
}

// TestABaseIsCopiedFromAMirror, and the primary sends no more than was on its way.
func TestABaseIsCopiedFromAMirror(t *testing.T) {
	o := offer(t)
	asked, left := make(chan *http.Request, 1), make(chan struct{})
	leave := sync.OnceFunc(func() { close(left) })
	o.harm = func(_ http.ResponseWriter, r *http.Request) bool {
		context.AfterFunc(r.Context(), leave)
		return false
	}
	web := o.mirror(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		o.half(w)
		select {
		case <-left: // the primary's answer is not kept under way meanwhile
		case <-time.After(20 * time.Second):
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(o.compressed[len(o.compressed)/2:])
	})
	f, log := fetcherOf(t, o.ServeHTTP)
	f.silence = 30 * time.Second
	requireFetched(t, f, o)
	r := <-asked
	require.Equal(t, "/bases/name.zst", r.URL.Path)
	require.Empty(t, r.Header.Get("Accept-Encoding"), "the hash is of what the mirror has")
	require.Nil(t, r.TLS, "the mirror learns no certificate")
	require.Contains(t, log.String(), "copying the database from the mirror "+strings.TrimPrefix(web.URL, "http://"))
	require.Eventually(t, func() bool { return o.sent.Load() < int64(len(o.compressed)/2) }, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{""}, o.ranges)
}

// TestAMirrorIsReachedThroughAProxy that the environment names, which a process reads once: another one does this.
func TestAMirrorIsReachedThroughAProxy(t *testing.T) {
	const name = "REGEDGE_TEST_PROXY"
	address := os.Getenv(name)
	if address == "" {
		address = testkit.FreePort(t)
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), name+"="+address, "HTTP_PROXY=http://"+address, "NO_PROXY=")
		output, err := child.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return
	}
	o := offer(t)
	o.about.Set("Content-Location", "http://mirror.example/name.zst")
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "mirror.example" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.compressed))
	})}
	defer proxy.Close()
	go proxy.Serve(listener)
	f, log := fetcherOf(t, o.ServeHTTP)
	requireFetched(t, f, o)
	require.Contains(t, log.String(), "from the mirror mirror.example")
	require.Less(t, o.sent.Load(), int64(len(o.compressed)), "the mirror sent the rest")
}

// TestWhatAMirrorSendsIsCounted as received in replication.
func TestWhatAMirrorSendsIsCounted(t *testing.T) {
	base := make([]byte, 10_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(base)))
		_, _ = w.Write(base)
	}))
	defer server.Close()
	f := &fetcher{traffic: new(Traffic), answer: time.Minute, silence: time.Minute, output: newOutput(nil)}
	primary, err := f.open(t.Context(), http.DefaultClient, server.URL)
	require.NoError(t, err)
	d := &download{f: f, ctx: t.Context(), from: primary, size: int64(len(base))}
	require.NoError(t, d.turnToMirror(server.URL))
	defer d.from.Close()
	got, err := io.ReadAll(d.from.Body)
	require.NoError(t, err)
	require.Len(t, got, len(base))
	require.Greater(t, f.traffic.Received.Load(), int64(len(base)))
}

// TestAMirrorThatFailsCostsNothingButTime: the primary sends what the mirror does not, from where that ended.
func TestAMirrorThatFailsCostsNothingButTime(t *testing.T) {
	t.Parallel()
	never := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		serve   func(o *offered) http.HandlerFunc
		because string
		resumed bool
	}{
		"it lacks it":        {func(*offered) http.HandlerFunc { return http.NotFound }, "404 Not Found", false},
		"it says nothing":    {func(*offered) http.HandlerFunc { return never }, "says nothing", false},
		"it has a part":      {func(o *offered) http.HandlerFunc { return part(o.compressed[:1000]) }, "has 1000 bytes, the primary", false},
		"it has more":        {func(o *offered) http.HandlerFunc { return part(append(bytes.Clone(o.compressed), 0)) }, "bytes, the primary", false},
		"it sends no length": {func(*offered) http.HandlerFunc { return endless }, "has -1 bytes", false},
		"it ends in the middle": {func(o *offered) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { o.half(w); panic(http.ErrAbortHandler) }
		}, "the primary sends the rest: unexpected EOF", true},
		"it hangs in the middle": {func(o *offered) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { o.half(w); never(w, r) }
		}, "the primary sends the rest: it takes connections and says nothing", true},
		"it drips": {func(o *offered) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { o.half(w); o.drip(w) }
		}, "the primary sends the rest: it brings less than 128 kB/s", true},
		"nobody is there": {nil, "connection refused", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := offer(t)
			if c.serve != nil {
				o.mirror(t, c.serve(o))
			} else {
				o.about.Set("Content-Location", "http://"+testkit.FreePort(t)+"/name.zst")
			}
			f, log := fetcherOf(t, o.ServeHTTP)
			if slow := regexp.MustCompile("says nothing|128 kB/s"); slow.MatchString(c.because) {
				f.answer, f.silence = 2*time.Second, 2*time.Second
			}
			requireFetched(t, f, o)
			require.Contains(t, log.String(), c.because)
			if c.resumed {
				require.Len(t, o.ranges, 2)
				require.Regexp(t, `^bytes=\d{5,}-$`, o.ranges[1])
				return
			}
			require.Equal(t, []string{""}, o.ranges)
		})
	}
}

func part(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

// endless sends without saying how much.
func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = w.Write(make([]byte, 1000))
		_ = http.NewResponseController(w).Flush()
	}
}

// TestAMirrorIsNotBelieved: what is not what the primary has is not taken, and the next fetch is of the primary. Nor does a
// mirror fill the disk with what unpacks to more.
func TestAMirrorIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(t *testing.T, o *offered) []byte{
		"a bit": func(_ *testing.T, o *offered) []byte { b := bytes.Clone(o.compressed); b[len(b)/2] ^= 1; return b },
		"nonsense": func(_ *testing.T, o *offered) []byte {
			return bytes.Repeat([]byte{'x'}, len(o.compressed))
		},
		"another database": func(t *testing.T, o *offered) []byte {
			other, err := prepare()
			require.NoError(t, err)
			return sized(other.compressed, len(o.compressed))
		},
		"a part, as large": func(t *testing.T, o *offered) []byte {
			path := filepath.Join(t.TempDir(), "part")
			_, _, err := compress(path, bytes.NewReader(o.database[:len(o.database)-pageSize]))
			require.NoError(t, err)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			rest := len(o.compressed) - len(content)
			content = binary.LittleEndian.AppendUint32(content, 0x184D2A50) // a frame that is skipped (RFC 8878, section 3.1.2)
			content = binary.LittleEndian.AppendUint32(content, uint32(rest-8))
			return append(content, make([]byte, rest-8)...)
		},
		"a bomb": func(t *testing.T, o *offered) []byte {
			path := filepath.Join(t.TempDir(), "bomb")
			_, _, err := compress(path, io.LimitReader(zeros{}, 64<<20))
			require.NoError(t, err)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			return sized(content, len(o.compressed))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := offer(t)
			asked := 0
			content := lie(t, o)
			o.mirror(t, func(w http.ResponseWriter, r *http.Request) { asked++; part(content)(w, r) })
			f, _ := fetcherOf(t, o.ServeHTTP)
			f.silence = 30 * time.Second
			_, err := f.mayFollow(t.Context())
			require.ErrorIs(t, err, errCopy)
			require.ErrorContains(t, err, "partly from a mirror, which is not asked again")
			if name == "a bomb" {
				require.ErrorContains(t, err, "has more than the 20971520 bytes", "no more was written")
			}
			require.NoFileExists(t, fetchedPath(f.dir))
			require.Equal(t, 1, asked)
			requireFetched(t, f, o)
			require.Equal(t, 1, asked)
		})
	}
}

// sized cuts or fills content to a size.
func sized(content []byte, size int) []byte {
	return append(content[:min(size, len(content))], make([]byte, size-min(size, len(content)))...)
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestANameThatIsNoAddressIsLeftAside.
func TestANameThatIsNoAddressIsLeftAside(t *testing.T) {
	for _, address := range []string{"file:///etc/passwd", "ftp://bucket.example.org/name.zst", "http://", "%zz", "name.zst"} {
		o := offer(t)
		o.about.Set("Content-Location", address)
		f, log := fetcherOf(t, o.ServeHTTP)
		requireFetched(t, f, o)
		require.Contains(t, log.String(), "no address of the web")
		require.NotContains(t, log.String(), "passwd")
	}
}

// TestADownloadGoesOnWhereItWas when the connection with the primary fails, and fails when the primary has another database
// by then, or brings nothing any more.
func TestADownloadGoesOnWhereItWas(t *testing.T) {
	breaks := func(o *offered, times int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if len(o.ranges) > times {
				return false
			}
			if r.Header.Get("Range") != "" {
				panic(http.ErrAbortHandler)
			}
			o.half(w)
			panic(http.ErrAbortHandler)
		}
	}
	t.Run("once", func(t *testing.T) {
		o := offer(t)
		o.harm = breaks(o, 1)
		f, _ := fetcherOf(t, o.ServeHTTP)
		requireFetched(t, f, o)
		require.Len(t, o.ranges, 2)
		require.Regexp(t, `^bytes=\d{5,}-$`, o.ranges[1])
	})
	t.Run("some times", func(t *testing.T) {
		o := offer(t)
		o.harm = breaks(o, resumes)
		f, _ := fetcherOf(t, o.ServeHTTP)
		requireFetched(t, f, o)
		require.Len(t, o.ranges, 1+resumes)
	})
	t.Run("too often", func(t *testing.T) {
		o := offer(t)
		o.harm = breaks(o, 1000)
		f, _ := fetcherOf(t, o.ServeHTTP)
		f.pause = 50 * time.Millisecond
		began := time.Now()
		_, err := f.mayFollow(t.Context())
		require.ErrorIs(t, err, errCopy)
		require.GreaterOrEqual(t, time.Since(began), (1+2+4)*f.pause, "each pause is longer")
		require.ErrorContains(t, err, "stream error")
		require.Len(t, o.ranges, 1+resumes)
		require.NoFileExists(t, fetchedPath(f.dir))
	})
	t.Run("often, and each time it brings something", func(t *testing.T) {
		o := offer(t)
		o.harm = func(w http.ResponseWriter, r *http.Request) bool {
			var from int
			_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
			w.Header().Set("Content-Length", strconv.Itoa(len(o.compressed)-from))
			if from > 0 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(o.compressed)-1, len(o.compressed)))
				w.WriteHeader(http.StatusPartialContent)
			}
			_, _ = w.Write(o.compressed[from:min(from+4<<20, len(o.compressed))])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		f, _ := fetcherOf(t, o.ServeHTTP)
		requireFetched(t, f, o)
		require.Greater(t, len(o.ranges), 1+resumes)
	})
	t.Run("too often, with answers that bring nothing", func(t *testing.T) {
		o := offer(t)
		o.harm = func(w http.ResponseWriter, r *http.Request) bool {
			var from int
			_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
			if from == 0 {
				o.half(w)
				panic(http.ErrAbortHandler)
			}
			if len(o.ranges) > 3*resumes {
				return false
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(o.compressed)-1, len(o.compressed)))
			w.WriteHeader(http.StatusPartialContent)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		f, _ := fetcherOf(t, o.ServeHTTP)
		_, err := f.mayFollow(t.Context())
		require.ErrorIs(t, err, errCopy)
		require.Len(t, o.ranges, 1+resumes)
	})
	t.Run("another part", func(t *testing.T) {
		o := offer(t)
		o.harm = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") != "" {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(o.compressed)-1, len(o.compressed)))
				w.WriteHeader(http.StatusPartialContent)
				return true
			}
			o.half(w)
			panic(http.ErrAbortHandler)
		}
		f, _ := fetcherOf(t, o.ServeHTTP)
		_, err := f.mayFollow(t.Context())
		require.ErrorContains(t, err, "the primary does not go on with it: 206")
	})
	t.Run("all but the end", func(t *testing.T) {
		o := offer(t)
		o.harm = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", strconv.Itoa(len(o.compressed)))
			_, _ = w.Write(o.compressed)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		f, _ := fetcherOf(t, o.ServeHTTP)
		requireFetched(t, f, o)
		require.Equal(t, []string{""}, o.ranges)
	})
	t.Run("another database", func(t *testing.T) {
		o := offer(t)
		o.harm = func(w http.ResponseWriter, _ *http.Request) bool {
			if len(o.ranges) > 1 {
				return false
			}
			o.half(w)
			o.log = newLogID()
			o.about = o.about.Clone()
			o.about.Set("Etag", o.log.tag())
			panic(http.ErrAbortHandler)
		}
		f, _ := fetcherOf(t, o.ServeHTTP)
		_, err := f.mayFollow(t.Context())
		require.ErrorContains(t, err, "the primary does not go on with it: 200 OK")
		requireFetched(t, f, o)
	})
}

// TestAMirrorIsAskedAgainAfterALostConnection: what it sent may be right.
func TestAMirrorIsAskedAgainAfterALostConnection(t *testing.T) {
	o := offer(t)
	lost := true
	o.mirror(t, func(w http.ResponseWriter, r *http.Request) {
		if !lost {
			part(o.compressed)(w, r)
			return
		}
		o.half(w)
		panic(http.ErrAbortHandler)
	})
	o.harm = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	f, log := fetcherOf(t, o.ServeHTTP)
	_, err := f.mayFollow(t.Context())
	require.ErrorIs(t, err, errCopy)
	require.NotContains(t, err.Error(), "not asked again")
	require.Equal(t, 1, strings.Count(log.String(), "the primary sends the rest"))
	lost = false
	requireFetched(t, f, o)
	require.Equal(t, 2, strings.Count(log.String(), "copying the database from the mirror"))
}

// TestAMirrorWritesNothingIntoTheLog but text, and not much.
func TestAMirrorWritesNothingIntoTheLog(t *testing.T) {
	for name, answer := range map[string]string{
		"a reason": "HTTP/1.1 404 \x1b[31mNamespaceDoesntExist" + strings.Repeat("x", 100_000) + "\r\n\r\n",
		"a field":  "HTTP/1.1 200 OK\r\n\x1b[31mno field\rregedge: " + strings.Repeat("x", 100_000) + "\r\n\r\n",
		"no HTTP":  "\x1b[31m" + strings.Repeat("x", 100_000) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 1000))
					_, _ = io.WriteString(conn, answer)
					conn.Close()
				}
			}()
			o := offer(t)
			o.about.Set("Content-Location", fmt.Sprintf("http://user:secret@%s/name.zst?token=secret", listener.Addr()))
			f, log := fetcherOf(t, o.ServeHTTP)
			requireFetched(t, f, o)
			require.Contains(t, log.String(), "the mirror is left aside: "+listener.Addr().String())
			for _, not := range []string{"\x1b", "\r", "secret", "NamespaceDoesntExist"} {
				require.NotContains(t, log.String(), not)
			}
			require.Less(t, len(log.String()), 2*saidBytes)
		})
	}
}

// TestAMirrorsAddressIsNotTold: neither to where the mirror sends the replica, nor in the log, since there may be a token in it.
func TestAMirrorsAddressIsNotTold(t *testing.T) {
	o := offer(t)
	asked := make(chan *http.Request, 1)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r; part(o.compressed)(w, r) }))
	defer other.Close()
	web := o.mirror(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	o.about.Set("Content-Location", web.URL+"/name.zst?token=secret")
	f, log := fetcherOf(t, o.ServeHTTP)
	requireFetched(t, f, o)
	require.Empty(t, (<-asked).Header.Get("Referer"))
	require.NotContains(t, log.String(), "secret")

	web.Close()
	f, log = fetcherOf(t, o.ServeHTTP)
	requireFetched(t, f, o)
	require.Contains(t, log.String(), "connection refused")
	require.NotContains(t, log.String(), "secret")
}

// TestAMirrorSendsNoReplicaInCircles, nor from https to http.
func TestAMirrorSendsNoReplicaInCircles(t *testing.T) {
	o := offer(t)
	asked := 0
	o.mirror(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	})
	f, log := fetcherOf(t, o.ServeHTTP)
	requireFetched(t, f, o)
	require.Contains(t, log.String(), "elsewhere again and again")
	require.Equal(t, 1+mirrorRedirects, asked)

	safe, err := http.NewRequest(http.MethodGet, "https://bucket.example.org/x", nil)
	require.NoError(t, err)
	plain, err := http.NewRequest(http.MethodGet, "http://bucket.example.org/x", nil)
	require.NoError(t, err)
	require.NoError(t, redirected(safe, []*http.Request{safe}))
	require.NoError(t, redirected(safe, []*http.Request{plain}))
	require.NoError(t, redirected(plain, []*http.Request{plain}))
	require.ErrorContains(t, redirected(plain, []*http.Request{plain, safe}), "from https to http")
}

// TestAFailedCopyLeavesNoConnectionOpen: each is tried again.
func TestAFailedCopyLeavesNoConnectionOpen(t *testing.T) {
	o := offer(t)
	o.about.Set(bytesField, strconv.Itoa(1<<60))
	open := make(chan int, 100)
	f, _ := fetcherOf(t, o.ServeHTTP, func(web *httptest.Server) {
		web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open <- 1
			case http.StateClosed:
				open <- -1
			}
		}
	})
	_, err := f.mayFollow(t.Context())
	require.ErrorContains(t, err, "MB free")
	require.Equal(t, 1, <-open)
	select {
	case <-open:
	case <-time.After(30 * time.Second):
		require.Fail(t, "the connection is still open")
	}
}

// TestTheReplicasOwnPausesAreNotTheServers: its disk may take longer than a server may say nothing.
func TestTheReplicasOwnPausesAreNotTheServers(t *testing.T) {
	o := offer(t)
	f, _ := fetcherOf(t, o.ServeHTTP)
	client, err := f.client()
	require.NoError(t, err)
	s, err := f.open(t.Context(), client, f.url)
	require.NoError(t, err)
	const silence = 300 * time.Millisecond
	for _, s.silence = range []time.Duration{time.Minute, silence} { // a busy machine may take longer to bring the first byte
		_, err = s.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	time.Sleep(2 * silence)
	s.silence = time.Minute
	_, err = io.ReadAll(s)
	require.NoError(t, err)
	s.Close()
	require.Error(t, s.ctx.Err(), "the replica's own context lives longer")
}

// steady brings so many bytes every two milliseconds, and before them a burst.
type steady struct{ burst, bytes int }

// Read implements io.Reader.
func (s *steady) Read(p []byte) (int, error) {
	time.Sleep(2 * time.Millisecond)
	n := min(max(s.bytes, s.burst), len(p))
	s.burst -= n
	return n, nil
}

// TestASlowMirrorIsLeft, also when it was fast before, and one that is fast enough is not.
func TestASlowMirrorIsLeft(t *testing.T) {
	for brings, want := range map[steady]error{{0, 20}: errSlow, {1 << 20, 20}: errSlow, {0, 8 << 10}: nil} {
		synctest.Test(t, func(t *testing.T) {
			d := &download{f: &fetcher{silence: 100 * time.Millisecond}, mirror: "bucket.example.org"}
			from := brings
			d.from = &stream{Response: &http.Response{Body: io.NopCloser(&from)}, watch: time.NewTimer(time.Hour), silence: time.Hour}
			var err error
			for began := time.Now(); err == nil && time.Since(began) < 300*time.Millisecond; {
				_, err = d.part(make([]byte, 32<<10))
			}
			require.Equal(t, want, err, "%+v", brings)
		})
	}
}

type unreached struct{}

func (unreached) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

// TestAFetchThatFailsAgainWaitsLonger: each costs its primary a whole database.
func TestAFetchThatFailsAgainWaitsLonger(t *testing.T) {
	for failed, want := range map[int]time.Duration{0: 0, 1: fetchPause, 2: 2 * fetchPause, 6: 32 * fetchPause, 100: 32 * fetchPause} {
		synctest.Test(t, func(t *testing.T) {
			f := &fetcher{asks: &http.Client{Transport: unreached{}}, answer: time.Minute, again: fetchPause, failed: failed}
			began := time.Now()
			_, err := f.mayFollow(t.Context())
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
			require.Equal(t, want, time.Since(began), "after %d", failed)
		})
	}
}

// TestAFetchWaitsForTheDiskNowAndThen: one wait for all that was written would hold up everybody else's.
func TestAFetchWaitsForTheDiskNowAndThen(t *testing.T) {
	from, to, err := os.Pipe() // which refuses to be synced
	require.NoError(t, err)
	defer from.Close()
	defer to.Close()
	s := &synced{file: to, since: syncedBytes - 2}
	_, err = s.Write([]byte{1})
	require.NoError(t, err)
	_, err = s.Write([]byte{1})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = s.Write([]byte{1})
	require.NoError(t, err, "the next wait is far away")
}

// TestAFailureIsForgottenOnceTheLogIsFollowed: the next copy, perhaps months later, waits for nothing.
func TestAFailureIsForgottenOnceTheLogIsFollowed(t *testing.T) {
	follows := false
	o := offer(t)
	o.about.Set(bytesField, "none")
	o.harm = func(w http.ResponseWriter, _ *http.Request) bool {
		if follows {
			w.WriteHeader(http.StatusNotModified)
		}
		return follows
	}
	f, _ := fetcherOf(t, func(w http.ResponseWriter, r *http.Request) {
		if !asksOnly(r) || !o.harm(w, r) {
			o.ServeHTTP(w, r)
		}
	})
	_, err := f.mayFollow(t.Context())
	require.ErrorContains(t, err, "how large")
	follows = true
	may, err := f.mayFollow(t.Context())
	require.NoError(t, err)
	require.True(t, may)
	f.again = time.Hour
	soon, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	_, err = f.mayFollow(soon)
	require.NoError(t, err)
}

// TestAMirrorThatIsLeftIsLeftAtOnce: it may have a lot to send, and the copy from the primary takes its time.
func TestAMirrorThatIsLeftIsLeftAtOnce(t *testing.T) {
	for name, begin := range map[string]func(o *offered, w http.ResponseWriter){
		"it has more": func(o *offered, w http.ResponseWriter) {
			w.Header().Set("Content-Length", strconv.Itoa(len(o.compressed)+1))
			_ = http.NewResponseController(w).Flush()
		},
		"it hangs in the middle": (*offered).half,
		"it drips":               func(o *offered, w http.ResponseWriter) { o.half(w); o.drip(w) },
	} {
		t.Run(name, func(t *testing.T) {
			o := offer(t)
			left := make(chan struct{})
			o.mirror(t, func(w http.ResponseWriter, r *http.Request) {
				begin(o, w)
				<-r.Context().Done()
				close(left)
			})
			o.harm = func(w http.ResponseWriter, r *http.Request) bool {
				rest := r.Header.Get("Range") != ""
				if !rest {
					o.half(w)
				}
				select {
				case <-left:
				case <-r.Context().Done():
				}
				if rest {
					return false
				}
				_, _ = w.Write(o.compressed[len(o.compressed)/2:])
				return true
			}
			f, _ := fetcherOf(t, o.ServeHTTP)
			f.answer, f.silence = 10*time.Second, 3*time.Second
			requireFetched(t, f, o)
		})
	}
}

// TestACopySaysNowAndThenHowFarItIs, as one of a country takes minutes.
func TestACopySaysNowAndThenHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		from := &counted{Reader: strings.NewReader(strings.Repeat("x", 4<<20)), all: 4 << 20, output: newOutput(&log), said: time.Now()}
		for _, took := range []time.Duration{fetchReport, fetchReport - 1, 0, 1} {
			time.Sleep(took)
			_, err := io.ReadFull(from, make([]byte, 1<<20))
			require.NoError(t, err)
		}
		require.Equal(t, "regedge: copied 1 of 4 MB (25%)\nregedge: copied 4 of 4 MB (100%)\n", log.String())
	})
}
