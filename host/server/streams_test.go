package server

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// sentBy is a connection whose client sends bytes, a few at a time.
type sentBy struct {
	net.Conn
	from  io.Reader
	pause int // bytes of a read; 0 for any number
}

func (c *sentBy) Read(p []byte) (int, error) {
	if c.pause > 0 {
		p = p[:min(len(p), c.pause)]
	}
	return c.from.Read(p)
}

func (c *sentBy) SetReadDeadline(time.Time) error { return nil }

// sent writes what a client sends: the preface, and frames.
func sent(write func(*http2.Framer, func(fields ...string) []byte)) []byte {
	var all, block bytes.Buffer
	all.WriteString(http2.ClientPreface)
	framer, encoder := http2.NewFramer(&all, nil), hpack.NewEncoder(&block)
	framer.AllowIllegalWrites = true
	write(framer, func(fields ...string) []byte {
		block.Reset()
		for _, field := range fields {
			name, value, _ := strings.Cut(field, ": ")
			_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
		}
		return bytes.Clone(block.Bytes())
	})
	return all.Bytes()
}

var wellFormedHeader = []string{
	":method: GET", ":scheme: https", ":authority: registry.example", ":path: /v1/companies/U72900ZZ2015PTC000001",
	"authorization: Bearer reg_live_abcdefghijklmnopqrstuvwxyz012345", "accept: */*", "user-agent: client/1.0", "x: " + strings.Repeat("a", 20),
}

// TestALongHeaderIsNotKept by an idle connection: thousands of them would take gigabytes. The fields behind it are read as
// without it.
func TestALongHeaderIsNotKept(t *testing.T) {
	longHeader := append(slices.Clone(wellFormedHeader), "long: "+strings.Repeat("|", 40_000))
	client := sent(func(f *http2.Framer, block func(...string) []byte) {
		first := block(longHeader...)
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first[:16_000], EndStream: true}))
		require.NoError(t, f.WriteContinuation(1, false, first[16_000:32_000]))
		require.NoError(t, f.WriteContinuation(1, true, first[32_000:]))
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block(wellFormedHeader...), EndStream: true, EndHeaders: true}))
	})
	s := newStreams(&sentBy{from: bytes.NewReader(client), pause: readBytes}, 64<<10)
	passed, err := io.ReadAll(s)
	require.NoError(t, err)
	framer := http2.NewFramer(nil, bytes.NewReader(bytes.TrimPrefix(passed, []byte(http2.ClientPreface))))
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for _, want := range [][]string{longHeader, wellFormedHeader} {
		frame, err := framer.ReadFrame()
		require.NoError(t, err)
		var got []string
		for _, field := range frame.(*http2.MetaHeadersFrame).Fields {
			got = append(got, field.Name+": "+field.Value)
		}
		require.Equal(t, want, got)
	}
	require.LessOrEqual(t, cap(s.raw)+cap(s.ready)+s.block.Cap()+s.frames.Cap(), 4*keptBytes)
	for _, field := range s.fields[:cap(s.fields)] {
		require.Less(t, len(field.Value), keptBytes)
	}
}

// TestAHeaderHasItsTimeAfterAHold: answers to earlier requests of its connection can hold it up again while it comes.
func TestAHeaderHasItsTimeAfterAHold(t *testing.T) {
	client := sent(func(f *http2.Framer, block func(...string) []byte) {
		header := block(wellFormedHeader...)
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header[:20], EndStream: true}))
		require.NoError(t, f.WriteContinuation(1, true, header[20:]))
	})
	synctest.Test(t, func(t *testing.T) {
		of, _ := without(t, Config{})
		from, to := net.Pipe()
		defer from.Close()
		held := &counted{Conn: to, of: &bounded{server: of}, address: "192.0.2.1", closed: make(chan struct{})}
		s := newStreams(held, 64<<10)
		go func() {
			const begun = len(http2.ClientPreface) + frameHeaderBytes + 3
			_, _ = from.Write(client[:begun])
			for _, part := range [][]byte{client[begun : begun+1], client[begun+1 : begun+2]} {
				time.Sleep(s.patience / 4)
				held.hold(longestHolds)
				_, _ = from.Write(part)
			}
			_, _ = from.Write(client[begun+2:])
			_ = from.Close()
		}()
		_, err := io.ReadAll(s)
		require.NoError(t, err)
		require.False(t, s.ended)
		require.EqualValues(t, 1, s.newest)
	})
}

// TestFramesArePassedOn compares what net/http would read with what the client sent, in all sizes of reads.
func TestFramesArePassedOn(t *testing.T) {
	client := sent(func(f *http2.Framer, block func(...string) []byte) {
		require.NoError(t, f.WriteSettings())
		first := block(wellFormedHeader...)
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 1, BlockFragment: first[:7], PadLength: 9, Priority: http2.PriorityParam{StreamDep: 3, Weight: 7},
		}))
		require.NoError(t, f.WriteContinuation(1, false, nil))
		require.NoError(t, f.WriteContinuation(1, true, first[7:]))
		require.NoError(t, f.WriteData(1, false, bytes.Repeat([]byte("d"), 10_000)))
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block("trailer: t"), EndStream: true, EndHeaders: true}))
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block(":method: GET", "bad name: x"), EndStream: true, EndHeaders: true}))
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: block(wellFormedHeader...), EndStream: true, EndHeaders: true}))
		require.NoError(t, f.WritePing(false, [8]byte{1}))
	})
	for _, pause := range []int{0, 1, 8, 100} {
		passed, err := io.ReadAll(newStreams(&sentBy{from: bytes.NewReader(client), pause: pause}, 64<<10))
		require.NoError(t, err)
		rest, found := bytes.CutPrefix(passed, []byte(http2.ClientPreface))
		require.True(t, found)
		framer := http2.NewFramer(nil, bytes.NewReader(rest))
		framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		var got []string
		for {
			frame, err := framer.ReadFrame()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			line := frame.Header().Type.String()
			if header, ok := frame.(*http2.MetaHeadersFrame); ok {
				for _, f := range header.Fields {
					line += " " + f.Name + ": " + f.Value
				}
			}
			got = append(got, line)
		}
		header := "HEADERS " + strings.Join(wellFormedHeader, " ")
		require.Equal(t, []string{
			"SETTINGS", header, "DATA", "HEADERS", "HEADERS :method: GET :scheme: https :authority: refused :path: / " + strings.ToLower(refusalField) + ": invalid_request",
			header, "PING",
		}, got)
	}
}

// TestFramesBeyondThoseOfRequestsAreHeldUp. What a client sends along with its requests is not.
func TestFramesBeyondThoseOfRequestsAreHeldUp(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		write   func(*http2.Framer, []byte)
		held    bool
	}{
		"a burst":          {"client", func(f *http2.Framer, _ []byte) { ping(t, f, frameBurst) }, false},
		"more":             {"client", func(f *http2.Framer, _ []byte) { ping(t, f, frameBurst+1) }, true},
		"of trusted proxy": {"", func(f *http2.Framer, _ []byte) { ping(t, f, frameBurst+1) }, false},
		"empty data": {"client", func(f *http2.Framer, _ []byte) {
			for range frameBurst + 1 {
				require.NoError(t, f.WriteData(1, false, nil))
			}
		}, true},
		"with requests": {"client", func(f *http2.Framer, header []byte) {
			for n := range uint32(frameBurst) {
				require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: header, EndStream: true, EndHeaders: true}))
				ping(t, f, framesPerRequest)
			}
		}, false},
		"with more than requests have": {"client", func(f *http2.Framer, header []byte) {
			require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header, EndStream: true, EndHeaders: true}))
			ping(t, f, frameBurst+1)
		}, true},
		"with trailers": {"client", func(f *http2.Framer, header []byte) {
			for range 2 {
				ping(t, f, frameBurst/2+1)
				require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header, EndStream: true, EndHeaders: true}))
			}
			ping(t, f, framesPerRequest-1)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.held, afterFrames(t, c.address, c.write).heldUntil() > 0)
		})
	}
}

// TestARequestAfterTooManyFramesHasItsOwn: what came before is paid for by the time that the connection was held up.
func TestARequestAfterTooManyFramesHasItsOwn(t *testing.T) {
	const more = 50
	conn := afterFrames(t, "client", func(f *http2.Framer, header []byte) {
		ping(t, f, frameBurst+more)
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header, EndStream: true, EndHeaders: true}))
		ping(t, f, framesPerRequest)
	})
	require.LessOrEqual(t, conn.heldUntil(), sinceStart()+more*frameInterval)
}

func ping(t *testing.T, f *http2.Framer, n int) {
	for range n {
		require.NoError(t, f.WritePing(false, [8]byte{1}))
	}
}

// afterFrames returns a connection of an address, on which nothing waits, after all that a client writes was read.
func afterFrames(t *testing.T, address string, write func(*http2.Framer, []byte)) *counted {
	t.Helper()
	client := sent(func(f *http2.Framer, block func(...string) []byte) { write(f, block(wellFormedHeader...)) })
	conn := &counted{Conn: &sentBy{from: bytes.NewReader(client)}, address: address, closed: make(chan struct{})}
	close(conn.closed)
	conn.of = &bounded{server: &Server{stopping: make(chan struct{})}}
	_, err := io.Copy(io.Discard, newStreams(conn, 64<<10))
	require.NoError(t, err)
	return conn
}

// FuzzStreams passes on anything. What comes out are the preface and whole frames, or their beginning.
func FuzzStreams(f *testing.F) {
	f.Add(sent(func(f *http2.Framer, block func(...string) []byte) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(wellFormedHeader...), EndStream: true, EndHeaders: true, PadLength: 3})
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block(":path: %ZZ"), EndHeaders: false})
		_ = f.WriteContinuation(3, true, block("a: b"))
		_ = f.WriteData(1, true, []byte("data"))
	}))
	f.Fuzz(func(t *testing.T, client []byte) {
		passed, err := io.ReadAll(newStreams(&sentBy{from: bytes.NewReader(client)}, 1<<10))
		require.NoError(t, err)
		for rest := passed[min(len(passed), len(http2.ClientPreface)):]; len(rest) >= frameHeaderBytes; {
			rest = rest[min(len(rest), frameHeaderBytes+frameLength(rest)):]
		}
	})
}

func BenchmarkStreams(b *testing.B) {
	client := sent(func(f *http2.Framer, block func(...string) []byte) {
		for n := range uint32(1000) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: block(wellFormedHeader...), EndStream: true, EndHeaders: true})
		}
	})
	b.ReportAllocs()
	for n := 0; n < b.N; n += 1000 {
		if _, err := io.Copy(io.Discard, newStreams(&sentBy{from: bytes.NewReader(client)}, 64<<10)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAFragmentMayBeEmpty: the header is then in the frames that continue it.
func TestAFragmentMayBeEmpty(t *testing.T) {
	padded := http2.FlagHeadersPadded
	require.Equal(t, []byte{}, withoutPadding([]byte{}, 0))
	require.Equal(t, []byte{}, withoutPadding([]byte{2, 0, 0}, padded))
	require.Nil(t, withoutPadding([]byte{3, 0, 0}, padded))
	require.Equal(t, []byte{}, withoutPadding(make([]byte, 5), http2.FlagHeadersPriority))
}

// TestALengthThatIsSaidOftenCostsNoMore than other fields do: over HTTP/2 a repeated field takes a byte, and each was compared
// with all before it, so that 1.4 KB took 3 ms.
func TestALengthThatIsSaidOftenCostsNoMore(t *testing.T) {
	took := func(n int) time.Duration {
		fields := slices.Repeat([]hpack.HeaderField{{Name: "content-length", Value: "0"}}, n)
		least := time.Hour
		for range 5 {
			began := time.Now()
			require.True(t, areRegular(fields))
			least = min(least, time.Since(began))
		}
		fields[n-1].Value = "1"
		require.False(t, areRegular(fields), "two lengths")
		return least
	}
	require.Less(t, took(8000), 40*took(800), "a hundred times as long for ten times as many")
}

// TestAHeaderThatDoesNotEndIsNotWaitedFor as long as the next request is: what came of it takes up to 256 KB. It may be slow.
func TestAHeaderThatDoesNotEndIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		defer client.Close()
		header := func(stream uint32, ends bool) []byte {
			return sent(func(f *http2.Framer, h func(...string) []byte) {
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: h(wellFormedHeader...), EndStream: true, EndHeaders: ends})
			})
		}
		end := sent(func(f *http2.Framer, _ func(...string) []byte) { _ = f.WriteContinuation(1, true, nil) })[len(http2.ClientPreface):]
		go func() {
			client.Write(header(1, false))
			time.Sleep(DefaultReadHeaderTimeout)
			client.Write(end)
			time.Sleep(DefaultIdleTimeout)
			client.Write(header(3, false)[len(http2.ClientPreface):])
		}()
		began := time.Now()
		s := newStreams(conn, 1<<20)
		for piece := make([]byte, 1<<10); !s.ended; {
			_, err := s.Read(piece)
			require.NoError(t, err)
		}
		require.EqualValues(t, 1, s.newest, "the first one came to its end")
		require.Equal(t, DefaultReadHeaderTimeout+DefaultIdleTimeout+DefaultReadHeaderTimeout+longestHolds, time.Since(began))
	})
}
