package chaos

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// attackerEnv holds the order of an attacker: a process that carries it out until it is interrupted, and
// prints its tally. It runs at the lowest priority: an attack comes from other machines, so here it must
// not take the processor from the edge. It sends without waiting for answers, so that more is asked at
// any time than the edge can answer.
const attackerEnv = "CHAOS_ATTACK"

// order says what an attacker does.
type order struct {
	Address     string
	Connections int
	// Streams are the streams of each connection, which is one of HTTP/2; 0 for HTTP/1.1.
	Streams int
	TLS     bool
	// Keys are used in turn.
	Keys []string
	// Page is a page for readers that is asked for under ever other host names, instead of a lookup.
	Page string
	Way  string
}

// The ways of attackers.
const (
	asks     = "asks"     // requests without pause, and reads the answers
	unread   = "unread"   // requests without pause, and reads nothing
	trickles = "trickles" // a request's header byte by byte
)

// tally is what an attacker did.
type tally struct {
	mu      sync.Mutex
	Sent    int64            // requests
	Answers map[string]int64 // by status
	Opened  int64            // connections
}

func (t *tally) add(sent int64, statuses map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Sent += sent
	for status, n := range statuses {
		t.Answers[status] += n
	}
}

// attackMain is the attacker's process.
func attackMain(text string) int {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	done := &tally{Answers: map[string]int64{}}
	var all sync.WaitGroup
	for n := range o.Connections {
		all.Go(func() { o.attack(ctx, n, done) })
	}
	all.Wait()
	_ = json.NewEncoder(os.Stdout).Encode(done)
	return 0
}

// attack keeps up one connection until ctx is done.
func (o *order) attack(ctx context.Context, n int, done *tally) {
	for ctx.Err() == nil {
		conn, err := o.connect(ctx, n)
		if err == nil {
			done.mu.Lock()
			done.Opened++
			done.mu.Unlock()
			end := context.AfterFunc(ctx, func() { _ = conn.Close() })
			if o.Streams > 0 {
				o.http2(conn, n, done)
			} else {
				o.http1(conn, n, done)
			}
			end()
			_ = conn.Close()
		}
		select { // a refused connection comes again, but costs the attacker time
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (o *order) connect(ctx context.Context, n int) (net.Conn, error) {
	from := dialer(fewAddresses(n))
	from.Timeout = 5 * time.Second
	conn, err := from.DialContext(ctx, "tcp", o.Address)
	if err != nil || !o.TLS {
		return conn, err
	}
	config := &tls.Config{InsecureSkipVerify: true}
	if o.Streams > 0 {
		config.NextProtos = []string{"h2"}
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

func (o *order) request(n int) []byte {
	if o.Page != "" {
		return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %d.example\r\n\r\n", o.Page, n)
	}
	return []byte("GET " + company + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + o.Keys[n%len(o.Keys)] + "\r\n\r\n")
}

func (o *order) http1(conn net.Conn, n int, done *tally) {
	if o.Way == trickles {
		trickle(conn, o.request(n))
		return
	}
	const depth = 10
	var batch []byte
	for i := range depth {
		batch = append(batch, o.request(n+i)...)
	}
	if o.Way == asks {
		go count(conn, done)
	}
	for {
		_, err := conn.Write(batch)
		if err != nil {
			return
		}
		done.add(depth, nil)
	}
}

// count counts the answers of a connection until it ends.
func count(conn net.Conn, done *tally) {
	answers := map[string]int64{}
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadSlice('\n')
		if status, ok := bytes.CutPrefix(line, []byte("HTTP/1.1 ")); ok && len(status) > 3 {
			answers[string(status[:3])]++
		}
		if err != nil && err != bufio.ErrBufferFull {
			done.add(0, answers)
			_ = conn.Close()
			return
		}
	}
}

// trickle sends bytes one by one.
func trickle(conn net.Conn, bytes []byte) {
	for i := range bytes {
		if _, err := conn.Write(bytes[i : i+1]); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// http2 opens new streams as fast as answers end others. With HTTP/2 the attacker who reads nothing
// gives no window, so that every answer stays at the edge.
func (o *order) http2(conn net.Conn, n int, done *tally) {
	window := uint32(1 << 30)
	if o.Way == unread {
		window = 0
	}
	send := bufio.NewWriter(conn)
	framer := http2.NewFramer(send, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = io.WriteString(send, http2.ClientPreface)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	_ = framer.WriteWindowUpdate(0, 1<<30)
	if o.Way == trickles {
		var whole bytes.Buffer
		_ = http2.NewFramer(&whole, nil).WriteHeaders(o.headers(n, 1))
		if send.Flush() == nil {
			trickle(conn, whole.Bytes())
		}
		return
	}
	var stream uint32 = 1
	open := func(many int) {
		for range many {
			_ = framer.WriteHeaders(o.headers(n, stream))
			stream += 2
		}
		done.add(int64(many), nil)
	}
	open(o.Streams)
	answers := map[string]int64{}
	defer func() { done.add(0, answers) }()
	for send.Flush() == nil {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			answers[f.PseudoValue("status")]++
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.RSTStreamFrame:
			answers["reset"]++
			open(1)
		case *http2.GoAwayFrame:
			answers["goaway"]++
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) && frame.Header().StreamID > 0 {
			open(1)
		}
	}
}

func (o *order) headers(n int, stream uint32) http2.HeadersFrameParam {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0)
	for _, field := range [][2]string{
		{":method", "GET"}, {":scheme", "https"}, {":authority", "h"}, {":path", company},
		{"authorization", "Bearer " + o.Keys[(n+int(stream)/2)%len(o.Keys)]},
	} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	return http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}
}

// String is a tally in a line.
func (t *tally) String() string {
	var answers []string
	for _, status := range slices.Sorted(maps.Keys(t.Answers)) {
		answers = append(answers, status+": "+strconv.FormatInt(t.Answers[status], 10))
	}
	return fmt.Sprintf("sent %d over %d connections, got %s", t.Sent, t.Opened, strings.Join(answers, ", "))
}
