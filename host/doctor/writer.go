package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"regedge/replicate/metering/writer"
)

// maxSkew is the maximum clock skew between an edge and the writer.
const maxSkew = 5 * time.Second

// TokenKind says whose token is used to call the writer.
type TokenKind int

// The kinds of tokens.
const (
	OperatorToken TokenKind = iota
	EdgeToken
)

// Writer asks the writer at address whether it is ready, compares the clocks, and then asks with a
// token. It returns whether the token is good.
func (e *Exam) Writer(ctx context.Context, address, token string, kind TokenKind) bool {
	const what = "writer"
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		e.Wrong(what, "--writer or REGEDGE_WRITER is a URL, such as https://centre.example.org:8081", "%q is not the address of a writer", address)
		return false
	}
	if !proxied(u) && !e.connects(ctx, what, hostPort(u)) {
		return false
	}
	address = strings.TrimRight(address, "/")
	a, err := e.ask(ctx, http.MethodGet, address+"/readyz", "", false)
	if err != nil {
		e.silent(what, address, err)
		return false
	}
	switch said := firstLine(a.body); {
	case a.status == http.StatusOK && said == "ready":
		e.OK(what, "%s is ready, and answered in %v", address, a.took.Round(100*time.Microsecond))
	case a.status == http.StatusServiceUnavailable && isPage(a.body):
		e.proxied(what, address, a)
		return false
	case a.status == http.StatusServiceUnavailable:
		e.notReady(address, said)
	default:
		e.Wrong(what, "does another service listen there? --writer or REGEDGE_WRITER is the address of the writer's API", "what answers at %s is not a writer (status %d)", address, a.status)
		return false
	}
	e.remarks(a.body)
	e.clock(a)
	return e.writerToken(ctx, address, token, kind)
}

// notReady notes a writer that says that it is not ready.
func (e *Exam) notReady(address, said string) {
	e.Wrong("writer", "look at the writer's log and at the ledger's disk; edges serve on their leases meanwhile", "%s is not ready: %s", address, said)
}

// WriterTroubles notes what a writer that answers says is wrong with itself; nothing when it is well.
func (e *Exam) WriterTroubles(ctx context.Context, address string) {
	address = strings.TrimRight(address, "/")
	a, err := e.ask(ctx, http.MethodGet, address+"/readyz", "", false)
	if err != nil {
		e.silent("writer", address, err)
		return
	}
	switch {
	case a.status == http.StatusServiceUnavailable && isPage(a.body):
		e.proxied("writer", address, a)
	case a.status == http.StatusServiceUnavailable:
		e.notReady(address, firstLine(a.body))
	}
	e.remarks(a.body)
}

// isPage reports whether an answer is empty or HTML, as a proxy's is that does not reach what it stands for.
func isPage(body []byte) bool {
	text := bytes.TrimSpace(body)
	return len(text) == 0 || text[0] == '<'
}

// proxied notes an answer that is not the writer's own.
func (e *Exam) proxied(what, address string, a *answer) {
	e.Wrong(what, "a proxy in front of the writer answers so when it does not reach it: look at its log, and on the writer's machine run regedge doctor",
		"what answers at %s is not the writer (status %d)", address, a.status)
}

// OwnWriter is Ready for the writer of this machine. It also notes what a ready writer remarks.
func (e *Exam) OwnWriter(ctx context.Context, address string, secure bool) {
	if a := e.ready(ctx, "writer", address, ReadyPath, secure); a != nil {
		e.remarks(a.body)
	}
}

// remarks notes what a writer that is ready has to remark.
func (e *Exam) remarks(body []byte) {
	if _, late, ok := strings.Cut(string(body), "the access database misses "); ok {
		do := "look at the access primary (regedge-primary@access), its disk, and the writer's token for it"
		if strings.Contains(late, writer.EmptyLedgerRemark) {
			do = "stop the writer: is its --database the ledger's file, and is that disk mounted? Start it when it is"
		}
		e.Wrong("access at the writer", do, "edges don't know of the newest changes: the access database misses %s", strings.TrimSpace(late))
	}
	for line := range strings.Lines(string(body)) {
		switch line = strings.TrimSpace(line); {
		case strings.Contains(line, "no heartbeat"):
			e.Wrong("heartbeats", "look at that primary (regedge-primary@NAME), its disk and the writer's token for it; if it answers reads while all writes hang, start it again",
				"the writer can't write to a primary, so that its replicas' age is unknown: %s", line)
		case strings.HasPrefix(line, writer.ClockRemark):
			e.Wrong("clock of the writer", "compare date -u at the writer and at an edge, and mend NTP on the machine that is wrong (timedatectl); don't restart the writer",
				"the writer says, and no node is ready: %s", line)
		}
	}
}

// clock compares this machine's clock with the Date of an answer, to the second.
func (e *Exam) clock(a *answer) {
	if a.date.IsZero() {
		return
	}
	// A Date is truncated to the second, so the clock was somewhere within that second.
	skew := a.date.Sub(a.asked)
	if behind := skew + time.Second; skew < 0 {
		skew = min(0, behind)
	}
	skew = skew.Round(time.Millisecond)
	if skew.Abs() > maxSkew {
		side := "ahead of"
		if skew < 0 {
			side = "behind"
		}
		e.Wrong("clock", "compare date -u on both machines, and mend NTP on the one that is wrong (timedatectl)", "the writer's clock is %v %s this machine's (more than %v either way keeps an edge from serving)", skew.Abs(), side, maxSkew)
		return
	}
	e.OK("clock", "it agrees with the writer's to the second")
}

// writerToken tries the token. No call with an edge's token changes nothing, so it sends an empty report, which the
// writer refuses as malformed, but only after it has checked the token.
func (e *Exam) writerToken(ctx context.Context, address, token string, kind TokenKind) bool {
	what, method, path := "operators' token", http.MethodGet, "/v1/health"
	if kind == EdgeToken {
		what, method, path = "token of the node", http.MethodPost, writer.ReportPath
	}
	if token == "" {
		e.Wrong(what, "set REGEDGE_TOKEN, or give --token-file", "there is none")
		return false
	}
	a, err := e.ask(ctx, method, address+path, token, false)
	if err != nil {
		e.silent(what, address, err)
		return false
	}
	var problem struct{ Code, Detail string }
	_ = json.Unmarshal(a.body, &problem)
	switch {
	case a.status == http.StatusOK:
		e.OK(what, "the writer accepts it")
		e.health(a.body)
		return true
	case kind == EdgeToken && a.status == http.StatusBadRequest:
		e.OK(what, "the writer accepts it")
		return true
	case problem.Code == "unauthorized" && kind == EdgeToken:
		e.Wrong(what, "is it the token of a node of this cluster? regedge node token NAME, at the centre, makes a new one for REGEDGE_TOKEN of edge.env", "the writer refuses it: %s", problem.Detail)
	case problem.Code == "unauthorized":
		e.Wrong(what, "is REGEDGE_TOKEN an operators' token of this cluster? regedge trust operator add makes one, at the centre", "the writer refuses it: %s", problem.Detail)
	case problem.Code == "token_ended":
		e.Wrong(what, "regedge trust operator add makes another, with a token that may do all", "%s", problem.Detail)
	case problem.Code == "":
		e.proxied(what, address, a)
	default:
		e.Wrong(what, "the writer's log says more", "the writer answers %d %s: %s", a.status, problem.Code, problem.Detail)
	}
	return false
}

// health notes what the writer's answer of its health says.
func (e *Exam) health(body []byte) {
	var h writer.Health
	if json.Unmarshal(body, &h) == nil {
		e.Restoring(h)
	}
}

// Restoring notes a restored ledger that waits for edges.
func (e *Exam) Restoring(h writer.Health) {
	if !h.Restoring {
		return
	}
	e.Wrong("ledger", "start these edges, or regedge node retire those that are gone for good", "it came back from a backup and grants nothing until these nodes have reported: %s", strings.Join(h.Waiting, ", "))
}
