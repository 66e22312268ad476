package cli

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/hint"
	"regedge/host/server"
	"regedge/host/service"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// registryFlags name the registry database.
type registryFlags struct {
	Registry          string `required:"" placeholder:"FILE|URL" help:"The registry database."`
	RegistryToken     string `placeholder:"TOKEN" help:"Token of the registry, when it is a libSQL server."`
	RegistryTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the registry; it wins over the token itself."`
}

// accessFlags name the access database.
type accessFlags struct {
	Access          string `required:"" placeholder:"FILE|URL" help:"The access database, which the writer keeps."`
	AccessToken     string `placeholder:"TOKEN" help:"Token of the access database, when it is a libSQL server."`
	AccessTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the access database; it wins over the token itself."`
}

// ledgerFlags name the ledger.
type ledgerFlags struct {
	Database          string `required:"" placeholder:"FILE|URL" help:"The ledger."`
	DatabaseToken     string `placeholder:"TOKEN" help:"Token of the ledger, when it is a libSQL server."`
	DatabaseTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the ledger; it wins over the token itself."`
}

// isRemote reports whether a database flag names a libSQL server rather than a file.
func isRemote(name string) bool {
	u, err := url.Parse(name)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "libsql")
}

// openWritable opens a database that this process owns: a libSQL server, or a file, which
// is made readable for its owner alone when it is missing.
func openWritable(name, token, tokenFile string) (*sql.DB, error) {
	token, err := readToken(token, tokenFile) // read even for a file, so that a wrong path is always an error
	if err != nil {
		return nil, err
	}
	if isRemote(name) {
		return libsql.Open(name, token)
	}
	db, err := schema.OpenPrivate(name)
	return db, schema.OfDisk(err)
}

// openRemote opens a libSQL server.
func openRemote(address, token, tokenFile string) (*sql.DB, error) {
	token, err := readToken(token, tokenFile)
	if err != nil {
		return nil, err
	}
	return libsql.Open(address, token)
}

// firstAnswer is the timeout of a first, trivial query.
const firstAnswer = 10 * time.Second

// openAnswering opens a libSQL server and checks that it answers, so that a command does not go on with one
// that hangs.
func (m *Main) openAnswering(ctx context.Context, address, token, tokenFile string) (*sql.DB, error) {
	db, err := openRemote(address, token, tokenFile)
	if err != nil {
		return nil, err
	}
	defer m.waiting(fmt.Sprintf("the libSQL server at %s, for %v at most", address, firstAnswer))()
	limited, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	var one int
	if err = db.QueryRowContext(limited, "SELECT 1").Scan(&one); err == nil {
		return db, nil
	}
	if ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("%w (%s, in %v)", libsql.ErrSilent, address, firstAnswer)
	}
	if call := new(url.Error); errors.As(err, &call) && !errors.Is(err, libsql.ErrSilent) {
		err = call // leaves out the driver's words about its statement
	}
	if err = libsql.Explain(err); strings.Contains(err.Error(), "error code 4") && !errors.Is(err, libsql.ErrUnauthorized) {
		err = fmt.Errorf("%w: %w", libsql.ErrAnswer, err) // every libSQL server answers SELECT 1
	}
	return nil, errors.Join(err, db.Close())
}

// readToken is a token, from a file or else from a flag.
func readToken(token, file string) (string, error) {
	if file == "" {
		return token, checkToken(token, "the token")
	}
	content, err := readSecret(file)
	if err != nil {
		if err = fmt.Errorf("read token: %w", err); hint.Of(err) == "" {
			err = hint.With(err, "name a file that this user can read and that holds the token alone")
		}
		return "", err
	}
	token = strings.TrimSpace(string(content))
	return token, checkToken(token, file)
}

// takeToken replaces a token's file by what is in it, for a token that is needed more than once: a pipe can be
// read only once.
func takeToken(token, file *string) error {
	read, err := readToken(*token, *file)
	if err == nil {
		*token, *file = read, ""
	}
	return err
}

// checkToken refuses a text that can't be sent as a token, such as that of another file.
func checkToken(token, from string) error {
	if !strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil
	}
	return hint.With(fmt.Errorf("%s holds more than a token: a line break, or a character that no token has", from),
		"is it the right file or variable? It holds the token alone")
}

// tokenFlags hold a bearer token, from a flag, a file or the environment.
type tokenFlags struct {
	Token     string `placeholder:"TOKEN" help:"Bearer token. Better in a file or the environment, where other users can't see it."`
	TokenFile string `type:"path" placeholder:"FILE" help:"File that holds the bearer token; it wins over the token itself."`
}

// bearerToken returns the token; there must be one. where says who makes it, for the hint.
func (f *tokenFlags) bearerToken(where string) (string, error) {
	token, err := readToken(f.Token, f.TokenFile)
	if err != nil {
		return "", err
	}
	if token == "" {
		return "", hint.With(errors.New("a token is needed"),
			"set REGEDGE_TOKEN, or give --token-file; %s", where)
	}
	return token, nil
}

// tlsFlags are the flags of an API that carries tokens: beyond this machine it is served
// with TLS only.
type tlsFlags struct {
	TLSCert   string `type:"path" placeholder:"FILE" help:"Certificate chain, PEM. It is read again when it changes."`
	TLSKey    string `type:"path" placeholder:"FILE" help:"Key of the certificate, PEM."`
	BehindTLS bool   `name:"behind-tls" help:"A proxy in front of this address speaks TLS: plain HTTP beyond this machine is meant."`
}

func (f *tlsFlags) check(address string) error {
	if err := checkAddress("--listen", address); err != nil {
		return err
	}
	if (f.TLSCert == "") != (f.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if f.TLSCert == "" && !f.BehindTLS && !isLoopback(address) {
		return fmt.Errorf("%s is reached from other machines, and tokens go over it: give --tls-cert and --tls-key, or say --behind-tls", address)
	}
	return nil
}

// listen opens the address of an API, with TLS when there is a certificate, whose end metrics shows.
func (f *tlsFlags) listen(m *Main, name, address string, metrics prometheus.Registerer, log *slog.Logger) (net.Listener, error) {
	listener, err := m.listen(name, "--listen", address)
	if err != nil {
		return nil, err
	}
	listener = server.Bound(listener, log)
	if f.TLSCert == "" {
		return listener, nil
	}
	config, err := readTLS(f.TLSCert, f.TLSKey, log)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	metrics.MustRegister(servedEnds(config, f.TLSCert, m.Now))
	config.NextProtos = []string{"http/1.1"}
	return tls.NewListener(listener, config), nil
}

// readTLS reads a certificate and its key. What happens to them later is logged.
func readTLS(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	config, err := server.NewTLS(certFile, keyFile, time.Now, log)
	if errors.Is(err, fs.ErrPermission) {
		return nil, hint.With(err, "the user that runs regedge must be able to read the certificate and its key")
	}
	if err != nil {
		return nil, hint.With(err, "--tls-cert is a chain in PEM, --tls-key the key that belongs to its first certificate")
	}
	return config, nil
}

// addressHint says what an address to listen on is.
const addressHint = "%s is HOST:PORT, with an address of this machine and a port that this user may open, such as 127.0.0.1:8080"

// checkAddress checks the form of an address to listen on. Opening it comes later.
func checkAddress(flag, address string) error {
	if address == "" {
		return hint.With(fmt.Errorf("%s is missing", flag), addressHint, flag)
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err == nil {
		return nil
	}
	return hint.With(fmt.Errorf("%s: %w", flag, err), addressHint, flag)
}

// isLoopback reports whether an address to listen on stays within this machine. A name
// other than localhost may not.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// isUnspecified reports whether addr stands for all addresses of this machine.
func isUnspecified(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsUnspecified()
}

// listen opens the address that a flag gives for a service, and calls m.Listening.
func (m *Main) listen(name, flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, hint.With(fmt.Errorf("the address %s of the %s is in use", address, name),
			"is regedge running already? Else %s takes another address", flag)
	}
	if err != nil {
		return nil, hint.With(fmt.Errorf("listen for the %s: %w", name, err),
			addressHint, flag)
	}
	if m.Listening != nil {
		m.Listening(name, listener.Addr())
	}
	return listener, nil
}

// metricsFlags are the flags of the commands whose metrics have an address of their own.
type metricsFlags struct {
	Metrics string `placeholder:"ADDR" help:"Address of the Prometheus metrics; none by default."`
	Pprof   bool   `help:"Serve Go's profiles at /debug/pprof/ of --metrics. Whoever reaches that address can then slow this process down."`
}

func (f *metricsFlags) check() error {
	if f.Pprof && f.Metrics == "" {
		return errors.New("--pprof needs --metrics, the address at which profiles are served")
	}
	if f.Metrics != "" {
		return checkAddress("--metrics", f.Metrics)
	}
	return nil
}

// listenForMetrics opens the address of the metrics; it returns nil without one.
func (m *Main) listenForMetrics(address string, closers *service.Closers) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := m.listen("metrics", "--metrics", address)
	if err == nil {
		closers.Add(service.IgnoreClosed(listener))
	}
	return listener, err
}

// checkPageURL refuses an address that links can't start with, and cuts trailing slashes, since
// the links add their own. An empty address is fine.
func checkPageURL(flag string, address *string) error {
	if *address == "" {
		return nil
	}
	u, err := url.Parse(*address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsAny(*address, "?#") {
		return fmt.Errorf("%s %q is not an address of pages, such as https://registry.example", flag, *address)
	}
	*address = strings.TrimRight(*address, "/")
	return nil
}
