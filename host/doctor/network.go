package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"regedge/replicate/dial"
)

// maxAnswer bounds an answer that is read, in bytes.
const maxAnswer = 1 << 20

// hostPort is the host and port that a URL connects to.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := "80"
	if u.Scheme == "https" || u.Scheme == "libsql" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// Dialable is the address to dial, from this machine, a server that listens on address.
func Dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// dial connects to the address of a name that answers first.
func (e *Exam) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return dial.Any(&net.Dialer{Timeout: e.Timeout})(ctx, network, address)
}

// connects returns whether something listens at host:port, and notes why not. A process that hangs
// still counts: the kernel accepts for it.
func (e *Exam) connects(ctx context.Context, what, address string) bool {
	conn, err := e.dial(ctx, "tcp", address)
	if err == nil {
		conn.Close()
		return true
	}
	var name *net.DNSError
	switch {
	case errors.As(err, &name) && !name.IsNotFound:
		e.Wrong(what, "the name may be right: are the name servers of this machine reached, and do they work (/etc/resolv.conf; getent hosts "+name.Name+")? A firewall that drops packets looks like this",
			"the name servers do not say what %s is: %v", name.Name, name.Err)
	case errors.As(err, &name):
		e.Wrong(what, "check the spelling, and the name servers of this machine (getent hosts "+name.Name+")", "the name %s can't be resolved: %v", name.Name, name.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Wrong(what, "is it running there? Look at systemctl status and its log; is the address right?", "nothing listens at %s", address)
	case isTimeout(err):
		e.Wrong(what, "is the machine on? A firewall that drops packets looks like this: open the port", "no connection to %s within %v", address, e.Timeout)
	default:
		e.Wrong(what, "check the address and the network of this machine", "no connection to %s: %v", address, err)
	}
	return false
}

// proxied reports whether a client of a URL asks a proxy that the environment names. Whether this machine could connect
// itself says nothing then.
func proxied(u *url.URL) bool {
	asked := *u
	if asked.Scheme == "libsql" {
		asked.Scheme = "https"
	}
	by := http.DefaultTransport.(*http.Transport).Proxy
	proxy, err := by(&http.Request{URL: &asked})
	return err == nil && proxy != nil
}

func isTimeout(err error) bool {
	var timed net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timed) && timed.Timeout()
}

// silent notes why a request to a listening address got no answer.
func (e *Exam) silent(what, address string, err error) {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var dialed *net.OpError
	switch {
	case errors.As(err, &dialed) && dialed.Op == "proxyconnect":
		e.Wrong(what, "mend or unset the proxy in HTTPS_PROXY or HTTP_PROXY, or name the address that needs none in NO_PROXY", "the proxy on the way to %s is not reached: %v", address, dialed.Err)
	case errors.As(err, &authority):
		e.Wrong(what, "is it the right machine? SSL_CERT_FILE names the authorities that are trusted in place of the system's: for a certificate of the cluster's own it is the ca.crt of its trust directory",
			"the certificate at %s is of an authority that is not trusted here", address)
	case errors.As(err, &name):
		e.Wrong(what, "use one of these names, or make a certificate for this one: regedge trust machine NAME --host HOST",
			"the certificate at %s is for %s, not for %s", address, strings.Join(namesOf(name.Certificate), ", "), name.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		e.Wrong(what, "if it ended, renew it there (docs/operations.md, \"Certificates\"); else this machine's clock is wrong: date -u", "the certificate at %s is not valid now: %v", address, err)
	case errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Wrong(what, "begin the address with http://, or give the service a certificate", "what listens at %s has no TLS", address)
	case isTimeout(err):
		e.Wrong(what, "it hangs: look at its log, at its disk (dmesg, iostat) and at its processes (a D in ps); a restart is the last resort", "%s accepts connections and does not answer within %v", address, e.Timeout)
	default:
		e.Wrong(what, "look at the log of what listens there", "%s does not answer: %v", address, err)
	}
}

// namesOf lists the names and addresses that a certificate is for.
func namesOf(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		names = []string{"no machine"}
	}
	return names
}

// answer is the answer to a request.
type answer struct {
	status int
	body   []byte
	date   time.Time // by the server's clock, zero if not sent
	asked  time.Time // halfway between sending and receiving
	took   time.Duration
}

// ask sends a request and reads the answer. The certificate of an own process, reached by an address of
// this machine, is not verified, and a proxy of the environment is not used for it.
func (e *Exam) ask(ctx context.Context, method, address, token string, own bool) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = e.dial // net/http's would wait for 15 s for the first of two addresses
	transport.TLSClientConfig = &tls.Config{Time: e.Now, InsecureSkipVerify: own}
	transport.DisableKeepAlives = true
	if own {
		transport.Proxy = nil
	}
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	began, begun := e.Now(), time.Now()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	a := &answer{status: response.StatusCode, took: time.Since(begun)}
	a.asked = began.Add(a.took / 2)
	a.date, _ = http.ParseTime(response.Header.Get("Date"))
	a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return a, err
}

// ReadyPath is where services say whether they are ready.
const ReadyPath = "/readyz"

// Ready checks the readiness page, at path, of a service of this machine that listens on address.
func (e *Exam) Ready(ctx context.Context, what, address, path string, secure bool) bool {
	return e.ready(ctx, what, address, path, secure) != nil
}

// ready is Ready, and returns the page of a service that is ready.
func (e *Exam) ready(ctx context.Context, what, address, path string, secure bool) *answer {
	address = Dialable(address)
	if !e.connects(ctx, what, address) {
		return nil
	}
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	a, err := e.ask(ctx, http.MethodGet, scheme+address+path, "", true)
	switch {
	case err != nil:
		e.silent(what, address, err)
	case a.status == http.StatusOK:
		e.OK(what, "it listens at %s and is ready", address)
		return a
	default:
		e.Wrong(what, "the other findings say more, and so does its log", "it listens at %s and is not ready: %s", address, firstLine(a.body))
	}
	return nil
}

// firstLine returns an answer's first line, for people.
func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if len(line) > 300 {
		line = line[:300] + "…"
	}
	return line
}
