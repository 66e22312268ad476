package cli

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"regedge/host/hint"
	"regedge/replicate/metering/writer"
)

// operator are the flags of the commands that call the writer's API.
type operator struct {
	Writer string `default:"http://127.0.0.1:8081" placeholder:"URL" help:"Address of the writer's API (${default})."`
	tokenFlags
	JSON bool `help:"Print JSON instead of a table."`
}

// client connects to the writer.
func (o *operator) client(m *Main) (*writer.Client, error) {
	token, err := o.bearerToken("the writer's environment has one, regedge trust operator add makes others, and regedge dev prints its own")
	if err != nil {
		return nil, err
	}
	if err := checkWriterURL(o.Writer); err != nil {
		return nil, err
	}
	return o.connect(m, token), nil
}

// connect returns a client of the writer that says when it waits.
func (o *operator) connect(m *Main, token string) *writer.Client {
	return writer.NewClient(o.Writer, token, nil).Watched(func() func() {
		return m.waiting(fmt.Sprintf("the writer at %s, for %v at most", o.Writer, writer.CallTimeout))
	})
}

// checkWriterURL refuses what can't be a writer's address.
func checkWriterURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return hint.With(fmt.Errorf("%q is not the address of a writer", address),
			"--writer or REGEDGE_WRITER is a URL, such as http://127.0.0.1:8081")
	}
	if rest, found := strings.CutSuffix(strings.TrimSuffix(address, "/"), "/v1"); found {
		return hint.With(fmt.Errorf("%q ends in /v1, which each call adds", address), "--writer or REGEDGE_WRITER is %s", rest)
	}
	return nil
}

// explain adds hints to the most common errors.
func (o *operator) explain(err error) error {
	var refused *os.SyscallError
	var late net.Error
	var dialed *net.OpError
	var asked *url.Error
	var stranger x509.UnknownAuthorityError
	var otherName x509.HostnameError
	var name *net.DNSError
	switch {
	case err == nil:
		return nil
	case notValidNow(err):
		return explainNotValid(err, o.Writer)
	case throughProxy(err):
		return explainProxy(err)
	case errors.As(err, &name):
		return explainName(err, name, "--writer or REGEDGE_WRITER")
	case errors.Is(err, writer.ErrUnauthorized):
		return hint.With(err, "is REGEDGE_TOKEN the operator's token of the writer at %s?", o.Writer)
	case errors.Is(err, writer.ErrTokenEnded):
		return hint.With(err, "regedge trust operator add makes another, with a token that may do all")
	case errors.Is(err, writer.ErrForbidden):
		return hint.With(err, "use a token with that role: regedge trust operator list shows them")
	case errors.Is(err, writer.ErrTooLong):
		return hint.With(err, "ask for less: usage has --account, --from and --to, and sums with --by")
	case errors.Is(err, writer.ErrStranger):
		if otherScheme(o.Writer) == "https://" {
			return hint.With(err, "is %s the address of the writer's API? Or should it begin with https://? Set --writer or REGEDGE_WRITER", o.Writer)
		}
		return hint.With(err, "is %s the address of the writer's API? Set --writer or REGEDGE_WRITER", o.Writer)
	case errors.Is(err, writer.ErrUnknownPlan):
		return hint.With(err, "regedge plan list shows the plans")
	case errors.Is(err, writer.ErrNotFound):
		return unknown(err)
	case errors.As(err, &stranger):
		return hint.With(err, "set SSL_CERT_FILE to the ca.crt of the cluster's trust directory")
	case errors.As(err, &otherName):
		return hint.With(err, "use a name of its certificate, or give it this one too: regedge trust machine writer --host NAME,…")
	case errors.As(err, &late) && late.Timeout() && errors.As(err, &dialed) && dialed.Op == "dial":
		return hint.With(err, "no machine answers there: is %s the right address (--writer or REGEDGE_WRITER), is the machine on, does a firewall drop connections?", o.Writer)
	case errors.As(err, &late) && late.Timeout():
		return hint.With(err, "%s takes connections and does not answer: does the writer hang, or its ledger's disk or server? On its machine: regedge doctor, and curl %s/readyz", o.Writer, strings.TrimSuffix(o.Writer, "/"))
	case errors.As(err, &refused):
		return hint.With(err, "is a writer (or regedge dev) running at %s? Set --writer or REGEDGE_WRITER", o.Writer)
	case errors.Is(err, io.EOF): // also before the request was sent
		return hint.With(err, "%s ended the connection: if the writer has just stopped, or its machine is overloaded, run the command again. Else is it another service, or should the address begin with %s?",
			o.Writer, otherScheme(o.Writer))
	case errors.As(err, &asked):
		return hint.With(err, "what listens at %s does not answer as a writer does: is it another service, or should the address begin with %s? Set --writer or REGEDGE_WRITER",
			o.Writer, otherScheme(o.Writer))
	}
	return err
}

// otherScheme is http:// for an address that begins with https://, and the reverse.
func otherScheme(address string) string {
	if strings.HasPrefix(strings.ToLower(address), "https:") {
		return "http://"
	}
	return "https://"
}

// notValidNow reports whether an error is about a certificate, or its authority's, that has expired or is not
// yet valid.
func notValidNow(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// explainNotValid adds a hint to such an error.
func explainNotValid(err error, address string) error {
	return hint.With(err, "the certificate at %s, or that of its authority, has ended or begins later: renew it there (docs/operations.md, \"Certificates\"). If the current time above is wrong, mend this machine's clock", address)
}

// throughProxy reports whether it was a proxy named by the environment that could not be reached.
func throughProxy(err error) bool {
	var dialed *net.OpError
	return errors.As(err, &dialed) && dialed.Op == "proxyconnect"
}

// explainProxy adds a hint to such an error.
func explainProxy(err error) error {
	return hint.With(err, "that is the proxy of HTTPS_PROXY or HTTP_PROXY in the environment: mend or unset it, or name the address that needs none in NO_PROXY")
}

// explainName adds a hint to an error of resolving a name. setting is where the name comes from.
func explainName(err error, name *net.DNSError, setting string) error {
	if name.IsNotFound {
		return hint.With(err, "there is no machine of the name %s: check its spelling in %s", name.Name, setting)
	}
	return hint.With(err, "the name servers of this machine do not say what %s is: are they reached, and do they work (/etc/resolv.conf; getent hosts %[1]s)?", name.Name)
}

// unknown adds to a not-found error a hint with the command that lists what exists. Only the text of the
// writer's answer says what kind of thing was not found.
func unknown(err error) error {
	for _, known := range []struct{ what, lists string }{
		{"account", "regedge account list shows the accounts"},
		{"key", "regedge key list ACCOUNT shows the keys of an account, with their ids"},
		{"node", "regedge node list shows the nodes; one that was added after the backup of a restored ledger is added again, and its edge keeps its --state"},
		{"token", "regedge trust operator list shows the tokens"},
		{"such charge in doubt", "regedge credit doubts shows them"},
	} {
		if strings.Contains(err.Error(), "there is no "+known.what) {
			return hint.With(err, "%s", known.lists)
		}
	}
	return err
}

// show makes one call of the writer's API and prints the result: as JSON, or by text.
func show[T any](m *Main, o *operator, call func(*writer.Client) (T, error), text func(*tabwriter.Writer, T)) error {
	client, err := o.client(m)
	if err != nil {
		return err
	}
	answer, err := call(client)
	if err != nil {
		return o.explain(err)
	}
	warnPending(m, answer)
	if o.JSON {
		return printJSON(m.Stdout, answer)
	}
	table := tabwriter.NewWriter(m.Stdout, 0, 0, 2, ' ', 0)
	text(table, answer)
	return table.Flush()
}

// printJSON prints a value for programs to read.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// warnPending says that edges do not know of a change yet.
func warnPending(m *Main, answer any) {
	if p, ok := answer.(interface{ IsPending() bool }); ok && p.IsPending() {
		fmt.Fprintln(m.Stderr, "regedge: the change is stored, but edges do not know of it yet: the access database is behind.\n"+
			"  Until it is not, edges go on with what they knew. The writer brings it there by itself; its /readyz says how far behind it is and why.")
	}
}

// row prints one row of a table.
func row(table *tabwriter.Writer, cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(table, "\t")
		}
		if text, ok := cell.(string); ok {
			cell = shown(text)
		}
		fmt.Fprint(table, cell)
	}
	fmt.Fprintln(table)
}

// shown quotes text that holds control characters, which could steer a terminal or break
// the table.
func shown(text string) string {
	if writer.Printable(text) {
		return text
	}
	return strconv.QuoteToGraphic(text)
}

// word returns yes when flag is true, else no.
func word(flag bool, yes, no string) string {
	if flag {
		return yes
	}
	return no
}
