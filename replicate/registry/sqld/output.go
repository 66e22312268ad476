package sqld

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"regedge/replicate/registry/libsql"
)

const (
	// maxLine bounds a line that is kept until it is complete, in bytes.
	maxLine = 64 << 10
	// forwardedEvery is the least time between two lines about forwarded statements.
	forwardedEvery = time.Minute
	// saidBytes bounds a line of our own, since it may quote a mirror.
	saidBytes = 2000
)

// forwarded occurs in the lines that a replica logs, twice and as errors, when it forwards a statement to a primary
// behind a gate. It forwards every statement until it has a copy, and then those that write.
var forwarded = []byte(libsql.OnlyReplication)

// unimportant occurs in lines that sqld logs as errors after each start, when a client continues a stream of the
// previous process. The client is told too, and begins another stream.
var unimportant = []byte("Invalid MAC on baton")

// probed is what Go's server logs when a client connects to a TLS port and leaves, as a probe does.
var probed = [][]byte{[]byte("TLS handshake error from "), []byte(": EOF\n")}

// unanswered is what Go's server logs when it closes the connection of a machine that has gone silently.
var unanswered = []byte("timeout waiting for PING response")

// compaction occurs in lines that a primary logs as errors, each second, while it makes a snapshot of its log and
// replicas ask for frames in it: gRPC's FAILED_PRECONDITION, "ask for the snapshot", and UNAVAILABLE, "not made yet".
// The replicas ask again.
var compaction = [][]byte{[]byte("classification=Code: 9"), []byte("classification=Code: 14")}

// whileStopping occur in lines that sqld logs as errors because it was asked to end: about statements that arrive
// meanwhile, calls of replicas and statistics that it breaks off, web sockets that it closes, and a file that only a
// primary has.
var whileStopping = [][]byte{
	[]byte("NamespaceDoesntExist"), []byte("NamespaceStoreShutdown"), []byte("classification=Code: 13"),
	[]byte("error persisting stats file: background task failed"), []byte("error persisting stats file: task was cancelled"),
	[]byte("server loop exited"), []byte("unable to remove .sentinel file: No such file"),
}

// output forwards a process's output, line by line, and looks for signs in it. It replaces lines with
// forwarded or unanswered by ones that explain them, and leaves unimportant ones out.
type output struct {
	doubted chan struct{} // has an element once a sign was seen
	now     func() time.Time

	mu    sync.Mutex
	to    io.Writer // may be nil
	part  []byte    // of a line that is not complete
	told  time.Time // when forwarded statements were last reported
	stops bool      // the process was asked to end
}

func newOutput(to io.Writer) *output {
	return &output{to: to, doubted: make(chan struct{}, 1), now: time.Now}
}

// Write never fails: the process must not end because its log cannot be written.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, p...)
	for {
		end := bytes.IndexByte(o.part, '\n') + 1
		if end == 0 && len(o.part) < maxLine {
			return len(p), nil
		}
		if end == 0 {
			end = len(o.part)
		}
		o.line(o.part[:end])
		o.part = append(o.part[:0], o.part[end:]...)
	}
}

// line forwards one line. o.mu is held.
func (o *output) line(line []byte) {
	for _, sign := range signs {
		if bytes.Contains(line, sign) {
			select {
			case o.doubted <- struct{}{}:
			default:
			}
		}
	}
	if bytes.Contains(line, unimportant) || hasAny(line, compaction) || bytes.Contains(line, probed[0]) && bytes.HasSuffix(line, probed[1]) ||
		o.stops && hasAny(line, whileStopping) {
		return
	}
	if bytes.Contains(line, unanswered) {
		line = []byte("regedge: a replica's machine does not answer any more: its connection is closed\n")
	}
	if bytes.Contains(line, forwarded) {
		now := o.now()
		if now.Sub(o.told) < forwardedEvery {
			return
		}
		o.told = now
		line = []byte("regedge: the replica has no copy yet, or something here sent it more than a read\n")
	}
	if o.to != nil {
		_, _ = o.to.Write(line)
	}
}

func hasAny(line []byte, parts [][]byte) bool {
	return slices.ContainsFunc(parts, func(part []byte) bool { return bytes.Contains(line, part) })
}

// stopping says that the process is asked to end.
func (o *output) stopping() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stops = true
}

// flush forwards what is left when the process has ended.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.part) > 0 {
		o.line(o.part)
		o.part = nil
	}
}

// say writes a line of our own, with spaces for what is not text.
func (o *output) say(line string) {
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ReplaceAll(line, "\n", "; "))
	fmt.Fprintf(o, "regedge: %s\n", strings.ToValidUTF8(line[:min(len(line), saidBytes)], ""))
}
