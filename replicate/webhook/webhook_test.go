package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/noticetest"
	"regedge/replicate/notice"
)

// post is a request that a receiver got.
type post struct {
	header http.Header
	body   string
}

// receiver is an owner's server. It answers with a status that the test sets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []post
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, post{q.Header, string(body)})
		if r.status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(r.status)
		io.WriteString(w, "words that nobody may see")
	}))
	r.Config.ErrorLog = nil
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) posts() []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]post{}, r.got...)
}

func (r *receiver) trust() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(r.Certificate())
	return &tls.Config{RootCAs: pool}
}

// office is one whose account 1 has a webhook.
type office struct {
	*noticetest.Office
	secret string
}

func newOffice(t *testing.T, config Config) *office {
	o := &office{secret: Secret([24]byte{1})}
	config.Now = func() time.Time { return o.Now }
	o.Office = noticetest.New(t, notice.Way{Channel: notice.Webhook, Carrier: New(config)})
	return o
}

func (o *office) set(url string) { o.SetWebhook(1, url, 0, o.secret) }

func (o *office) test() error { return o.Test(o.Webhook(1)) }

func (o *office) send() int { return o.Send(notice.Webhook) }

func (o *office) last() notice.Delivery { return o.Last(o.Webhook(1)) }

func TestAnEventIsSentSignedAndOnce(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL + "/hook?x=1")
	require.NoError(t, o.test())
	require.Equal(t, 1, o.send())
	require.Zero(t, o.send(), "what was delivered is not sent again")
	got := r.posts()
	require.Len(t, got, 1)
	id, at := got[0].header.Get(IDHeader), got[0].header.Get(TimestampHeader)
	require.Equal(t, strconv.FormatInt(o.Now.Unix(), 10), at)
	want, err := Sign(o.secret, id, at, []byte(got[0].body))
	require.NoError(t, err)
	require.Equal(t, want, got[0].header.Get(SignatureHeader))
	require.Equal(t, "application/json", got[0].header.Get("Content-Type"))
	require.Equal(t, "regedge-webhook", got[0].header.Get("User-Agent"), "an owner's server can tell who calls")
	require.Equal(t, "close", got[0].header.Get("Connection"), "the next one looks the host up anew")
	for _, other := range [][2]string{{at, got[0].body + " "}, {at + "0", got[0].body}} {
		forged, err := Sign(o.secret, id, other[0], []byte(other[1]))
		require.NoError(t, err)
		require.NotEqual(t, want, forged, "another time or body has another signature")
	}
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(got[0].body), &body))
	require.Equal(t, []any{id, notice.Test, "2026-01-31T12:00:00Z", 1.0}, []any{body["id"], body["type"], body["timestamp"], body["account"]})
	d := o.last()
	require.Equal(t, []any{1, "204", true}, []any{d.Attempts, d.Last, d.Delivered != nil && d.Next == nil})
}

// TestSignaturesAreThoseOfStandardWebhooks has the example of that specification's libraries.
func TestSignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	got, err := Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", got)
}

// TestNothingIsSentWithoutASignature, whose secret can't be read.
func TestNothingIsSentWithoutASignature(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.secret = SecretPrefix + "no base64"
	o.set(r.URL)
	require.NoError(t, o.test())
	o.send()
	require.Equal(t, "the secret can't be read: make a new one", o.last().Last)
	require.Empty(t, r.posts())
}

func TestAFailedAttemptIsRepeatedWithGrowingPauses(t *testing.T) {
	r := newReceiver(t)
	r.answer(http.StatusInternalServerError)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL)
	require.NoError(t, o.test())
	began := o.Now
	for i := 1; i <= notice.MaxAttempts; i++ {
		require.Equal(t, 1, o.send(), i)
		require.Zero(t, o.send(), "not before the pause is over")
		d := o.last()
		require.Equal(t, []any{i, "500", true}, []any{d.Attempts, d.Last, d.Delivered == nil})
		if i == notice.MaxAttempts {
			require.Nil(t, d.Next, "it is given up")
			break
		}
		require.Equal(t, min(30*time.Second<<(2*min(i-1, 5)), 6*time.Hour), d.Next.Sub(o.Now))
		o.Now = *d.Next
	}
	require.InDelta(t, 48*time.Hour, o.Now.Sub(began), float64(6*time.Hour))
	ids := map[string]bool{}
	for _, p := range r.posts() {
		ids[p.header.Get(IDHeader)] = true
	}
	require.Len(t, ids, 1, "every attempt has the event's id")

	require.NoError(t, o.test())
	r.answer(http.StatusOK)
	o.Open(notice.Way{Channel: notice.Webhook, Carrier: New(Config{Private: true, Trust: r.trust()})})
	n := o.send()
	require.Equal(t, 1, n, "a sender that starts anew finds what waits")
}

func TestRedirectsAreNotFollowedAndAnswersNotKept(t *testing.T) {
	r := newReceiver(t)
	r.answer(http.StatusFound)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL)
	require.NoError(t, o.test())
	o.send()
	require.Len(t, r.posts(), 1)
	require.Equal(t, "302", o.last().Last)
	require.Nil(t, o.last().Delivered)
	var kept int
	require.NoError(t, o.DB.QueryRow(`SELECT count(*) FROM notice WHERE instr(body || last, 'nobody may see')`).Scan(&kept))
	require.Zero(t, kept)
}

// TestOnlyPublicAddressesAreCalled sends to a server that listens on loopback, by number and by name.
func TestOnlyPublicAddressesAreCalled(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Trust: r.trust()})
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	require.NoError(t, err)
	for host, words := range map[string]string{
		"127.0.0.1": "not a public address", "[::1]": "not a public address", "[::ffff:127.0.0.1]": "not a public address",
		"localhost": "the host is unknown, or not at a public address", "2130706433": "the host is unknown, or not at a public address",
		"127.1": "the host is unknown, or not at a public address", "no-such-host.invalid": "the host is unknown, or not at a public address",
	} {
		o.Exec(`DELETE FROM notice`)
		o.set("https://" + host + ":" + port + "/")
		require.NoError(t, o.test())
		o.send()
		require.Contains(t, o.last().Last, words, host)
	}
	require.Empty(t, r.posts())
	require.NoError(t, onlyPublic("tcp", "8.8.8.8:443", nil))
	for _, address := range []string{"10.0.0.1:443", "8.8.8.8", ""} {
		require.ErrorIs(t, onlyPublic("tcp", address, nil), errNotPublic, address)
	}
	require.Nil(t, New(Config{}).client.Transport.(*http.Transport).Proxy, "what a proxy connects to is not seen")
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "127.0.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "100.64.0.1": false, "224.0.0.1": false,
		"255.255.255.255": false, "198.18.0.1": false, "::": false, "::1": false, "fe80::1": false, "2606:4700:4700::1111%eth0": false, "fc00::1": false, "ff02::1": false,
		"::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "2001:db8::1": false, "2001::1": false, "fec0::1": false,
		"240.0.0.1": false, "192.0.0.8": false, "192.0.2.1": false, "192.88.99.1": false, "198.51.100.1": false, "203.0.113.1": false,
		"3fff::1": false, "4000::1": false,
		// The last addresses of networks, and those beside them.
		"1.0.0.0": true, "100.127.255.255": false, "100.128.0.0": true, "192.0.1.0": true, "192.0.3.0": true, "192.88.98.0": true,
		"198.17.255.255": true, "198.19.255.255": false, "198.20.0.0": true, "198.51.101.0": true, "203.0.114.0": true,
		"2001:1ff:ffff::1": false, "2001:200::1": true, "2001:db9::1": true, "2003::1": true, "3fff:fff::1": false, "3fff:1000::1": true,
	} {
		require.Equal(t, want, public(netip.MustParseAddr(address)), address)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	longest := "https://example.com/" + strings.Repeat("x", MaxURL-len("https://example.com/"))
	for _, good := range []string{longest, "https://example.com/hook", "https://example.com:8443/a?b=c%20d", "https://8.8.8.8/"} {
		require.NoError(t, CheckURL(good, false), good)
	}
	require.NoError(t, CheckURL("http://127.0.0.1:9/", true))
	for _, bad := range []string{
		"", "example.com", "http://example.com", "ftp://example.com", "https://", "https:example.com", "https://user:pass@example.com", "https://example.com/#x",
		"https://10.0.0.1/", "https://[::1]/", "https://exa mple.com", "https://example.com/a b", "https://example.com/\n", "https://example.com/é", "javascript:alert(1)",
		longest + "x",
	} {
		require.ErrorIs(t, CheckURL(bad, false), ErrURL, bad)
	}
}

func TestWhyThereIsNoAnswerIsSaid(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true})
	for _, want := range []string{"the certificate is not trusted", "no connection"} {
		o.Exec(`DELETE FROM notice`)
		o.set(r.URL)
		require.NoError(t, o.test())
		o.send()
		require.Equal(t, want, o.last().Last)
		r.Close()
	}
}

// TestThatNoWebhookIsReachedIsLoggedOnce, until one is: the fault may be in the writer's network, which no
// owner can mend. An answer that is no success is of the owner's server.
func TestThatNoWebhookIsReachedIsLoggedOnce(t *testing.T) {
	log := new(testkit.Log)
	carrier := New(Config{Private: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	answers := httptest.NewServer(http.NotFoundHandler())
	defer answers.Close()
	refuses := httptest.NewServer(http.NotFoundHandler())
	refuses.Close()
	carry := func(addresses ...string) {
		var list []notice.Notice
		for _, address := range addresses {
			list = append(list, notice.Notice{ID: "a", URL: address, Secret: Secret([24]byte{1})})
		}
		carrier.Carry(t.Context(), list)
	}
	logged := func() int { return strings.Count(log.String(), "no webhook is reached") }
	carry(refuses.URL, answers.URL)
	require.Zero(t, logged(), "one was answered")
	carry(refuses.URL, refuses.URL)
	carry(refuses.URL)
	require.Equal(t, 1, logged())
	require.Contains(t, log.String(), `calls=2 reason="no connection"`)
	carry(answers.URL)
	carry(refuses.URL)
	require.Equal(t, 2, logged(), "again")
}

// TestACallThatTheStopCutsShortIsNoFault: no operator is to look for it.
func TestACallThatTheStopCutsShortIsNoFault(t *testing.T) {
	log := new(testkit.Log)
	carrier := New(Config{Private: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stop(); <-over }))
	defer slow.Close()
	defer close(over)
	carrier.Carry(ctx, []notice.Notice{{ID: "a", URL: slow.URL, Secret: Secret([24]byte{1})}})
	require.Empty(t, log.String())
}

// TestANameServerThatHangsSaysNothingAboutAHost, so that no owner looks for a mistake in a right address.
func TestANameServerThatHangsSaysNothingAboutAHost(t *testing.T) {
	for want, err := range map[string]*net.DNSError{
		"no name server said where the host is":           {Name: "hooks.example", Err: "i/o timeout", IsTimeout: true},
		"the host is unknown, or not at a public address": {Name: "hooks.example", Err: "no such host", IsNotFound: true},
	} {
		require.Equal(t, want, inWords(&net.OpError{Op: "dial", Err: err}))
	}
	broken := &net.DNSError{Name: "hooks.example", Err: "server misbehaving", IsTemporary: true}
	require.Equal(t, "no name server said where the host is", inWords(&net.OpError{Op: "dial", Err: broken}))
}

// TestOneSlowReceiverHoldsUpNoOther has one that does not answer until the others have.
func TestOneSlowReceiverHoldsUpNoOther(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	answered := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answered }))
	t.Cleanup(slow.Close)
	o.set(slow.URL)
	require.NoError(t, o.test())
	o.SetWebhook(2, r.URL, 0, o.secret)
	require.NoError(t, o.Test(o.Webhook(2)))
	sent := make(chan int)
	go func() { n, _ := o.Sender.Send(t.Context(), notice.Webhook); sent <- n }()
	require.Eventually(t, func() bool { return len(r.posts()) == 1 }, 30*time.Second, time.Millisecond)
	close(answered)
	require.Equal(t, 2, <-sent)
}

// TestAnAnswerIsNotReadToItsEnd: it may have none, and its status is known.
func TestAnAnswerIsNotReadToItsEnd(t *testing.T) {
	left := make(chan struct{})
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 64<<10))
		<-r.Context().Done()
		close(left)
	}))
	defer endless.Close()
	carrier := New(Config{Private: true})
	carrier.client.Timeout = time.Hour
	got := make(chan []notice.Outcome)
	go func() {
		got <- carrier.Carry(t.Context(), []notice.Notice{{ID: "a", URL: endless.URL, Secret: Secret([24]byte{1})}})
	}()
	select {
	case outcomes := <-got:
		require.Equal(t, []notice.Outcome{{State: notice.Delivered, Result: "200"}}, outcomes)
	case <-time.After(attemptLimit):
		endless.CloseClientConnections()
		require.Fail(t, "the answer is still read")
	}
	select {
	case <-left:
	case <-time.After(attemptLimit):
		endless.CloseClientConnections()
		require.Fail(t, "the connection is still open")
	}
}

// TestAnAnswerWithALongHeaderIsNone: the writer would keep it in memory.
func TestAnAnswerWithALongHeaderIsNone(t *testing.T) {
	long := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Long", strings.Repeat("x", 64<<10)) }))
	defer long.Close()
	got := New(Config{Private: true}).Carry(t.Context(), []notice.Notice{{ID: "a", URL: long.URL, Secret: Secret([24]byte{1})}})
	require.Equal(t, []notice.Outcome{{State: notice.Failed, Result: "no connection"}}, got)
}

func TestTheSenderRunsUntilItsContextEnds(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL)
	require.NoError(t, o.test())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Sender.Run(ctx) }()
	require.Eventually(t, func() bool { return len(r.posts()) > 0 }, 30*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

func TestACallHasADeadline(t *testing.T) {
	over := make(chan struct{})
	slow := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer slow.Close()
	defer close(over)
	pool := x509.NewCertPool()
	pool.AddCert(slow.Certificate())
	carrier := New(Config{Private: true, Trust: &tls.Config{RootCAs: pool}})
	require.Equal(t, attemptLimit, carrier.client.Timeout)
	carrier.client.Timeout = 100 * time.Millisecond
	got := carrier.Carry(t.Context(), []notice.Notice{{ID: "a", URL: slow.URL, Secret: Secret([24]byte{1})}})
	require.Equal(t, []notice.Outcome{{State: notice.Failed, Result: "no answer within 10 s"}}, got)
}

// TestAHostThatTakesNoConnectionInTimeIsNotConnected, as behind a firewall that drops the calls out: the guide says to look
// for one where no owner's webhook is connected to.
func TestAHostThatTakesNoConnectionInTimeIsNotConnected(t *testing.T) {
	r := newReceiver(t)
	carrier := New(Config{Private: true, Trust: r.trust()})
	carrier.client.Transport.(*http.Transport).DialContext = (&net.Dialer{Timeout: time.Nanosecond}).DialContext
	got := carrier.Carry(t.Context(), []notice.Notice{{ID: "a", URL: r.URL, Secret: Secret([24]byte{1})}})
	require.Equal(t, []notice.Outcome{{State: notice.Failed, Result: "no connection"}}, got)
}

// TestThePageNamesTheTimeOfAReceiver: an owner's server has as long as the page about it says.
func TestThePageNamesTheTimeOfAReceiver(t *testing.T) {
	page, err := os.ReadFile("../dashboard/pages/webhook.html")
	require.NoError(t, err)
	require.Contains(t, string(page), "Answer with 2xx within "+strconv.Itoa(int(attemptLimit/time.Second))+" seconds.")
}

// TestEverySuccessIsOne: some receivers answer that they will look later.
func TestEverySuccessIsOne(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL)
	for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent} {
		r.answer(status)
		require.NoError(t, o.test())
		require.Equal(t, 1, o.send(), status)
		require.NotNil(t, o.last().Delivered, status)
		o.Now = o.Now.Add(time.Second)
	}
}
