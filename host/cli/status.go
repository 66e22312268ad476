package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"regedge/host/doctor"
	"regedge/host/hint"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/push"
	"regedge/schema/importer"
)

type statusCommand struct {
	operator
	Registry          string        `placeholder:"URL" help:"The registry's primary or a replica, to show its releases."`
	RegistryToken     string        `placeholder:"TOKEN" help:"Token of the registry; at a replica, one that may only read."`
	RegistryTokenFile string        `type:"path" placeholder:"FILE" help:"File that holds the token of the registry; it wins over the token itself."`
	Watch             bool          `env:"-" help:"Show it again and again, until interrupted."`
	Interval          time.Duration `env:"-" default:"2s" help:"With --watch, how often (${default})."`
	Explain           bool          `env:"-" help:"Say what is wrong with the writer and with each node and what to do about it; exit with 1 when something is."`
}

// status is the command's output.
type status struct {
	// At is the time by the writer's clock, like the times of reports. An operator's own clock may be wrong.
	At       time.Time      `json:"at"`
	Nodes    []nodeStatus   `json:"nodes"`
	Releases []push.Release `json:"releases,omitempty"`
	// Findings are set with --explain.
	Findings []doctor.Finding `json:"findings,omitempty"`
	// empty means that the registry has no release; failed is why it could not be queried.
	empty  bool
	failed error
}

// registryPatience is the timeout for the registry's server: the nodes are shown whether or not it answers.
const registryPatience = 5 * time.Second

// nodeStatus is a node and its last report, nil when there is none.
type nodeStatus struct {
	writer.Node
	Report *writer.Report `json:"report"`
}

// Validate refuses an interval that leaves no pause.
func (c *statusCommand) Validate() error {
	if c.Interval <= 0 {
		return errors.New("--interval must be positive")
	}
	return nil
}

// Run shows the state of the cluster.
func (c *statusCommand) Run(ctx context.Context, m *Main) error {
	client, err := c.client(m)
	if err != nil {
		return err
	}
	shown := false
	for {
		now, err := c.collect(ctx, m, client)
		if err == nil && c.Explain {
			now.Findings = append(c.troubles(ctx, client), now.explain()...)
		}
		if c.Watch && ctx.Err() != nil {
			return nil // what the interruption cut off has not failed
		}
		if err == nil {
			shown = true
			if err := c.print(m, now); err != nil {
				return err
			}
			if err = c.explainRegistry(now.failed); err == nil {
				err = areWrong(now.Findings)
			}
		} else {
			err = c.explain(err)
		}
		if !c.Watch || !shown { // a running watch survives an outage of the writer
			return err
		}
		if err != nil {
			m.complain(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Interval):
		}
	}
}

func (c *statusCommand) collect(ctx context.Context, m *Main, client *writer.Client) (*status, error) {
	at := m.Now()
	client = client.Timed(func(now time.Time) { at = now })
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	reports, err := client.Reports(ctx)
	if err != nil {
		return nil, err
	}
	s := &status{At: at.UTC(), Nodes: []nodeStatus{}}
	for _, n := range nodes {
		shown := nodeStatus{Node: n}
		for i := range reports {
			if reports[i].Node == n.Name {
				shown.Report = &reports[i]
			}
		}
		s.Nodes = append(s.Nodes, shown)
	}
	if c.Registry == "" {
		return s, nil
	}
	if s.failed = takeToken(&c.RegistryToken, &c.RegistryTokenFile); s.failed != nil {
		return s, nil
	}
	registry, err := libsql.Open(c.Registry, c.RegistryToken)
	if err != nil {
		s.failed = err
		return s, nil
	}
	defer registry.Close()
	defer m.waiting(fmt.Sprintf("the registry at %s, for %v at most", c.Registry, registryPatience))()
	limited, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	s.Releases, s.failed = push.Releases(limited, registry)
	s.empty = s.failed == nil && len(s.Releases) == 0
	return s, nil
}

// explainRegistry adds a hint to an error of the registry. The nodes are shown anyway.
func (c *statusCommand) explainRegistry(err error) error {
	if err == nil || hint.Of(err) != "" {
		return err
	}
	if throughProxy(err) {
		return explainProxy(err)
	}
	var name *net.DNSError
	if errors.As(err, &name) {
		return explainName(err, name, "--registry or REGEDGE_REGISTRY")
	}
	if notValidNow(err) {
		return explainNotValid(err, c.Registry)
	}
	if stranger := new(x509.UnknownAuthorityError); errors.As(err, stranger) {
		return hint.With(err, "set SSL_CERT_FILE to the ca.crt that signed the certificate at %s", c.Registry)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		ask := "is the machine on, does its server hang?"
		if u, err := url.Parse(c.Registry); err == nil && net.ParseIP(u.Hostname()) == nil {
			ask = "do the name servers of this machine answer, " + ask
		}
		return hint.With(err, "nothing answered for %s within %v: %s", c.Registry, registryPatience, ask)
	}
	return hint.With(err, "is the registry's server running at %s, and is the token one of its own (a primary takes those that write, a replica those that only read)? Without --registry or REGEDGE_REGISTRY only the nodes are shown", c.Registry)
}

// clearScreen moves to the top left of a terminal and clears it (ECMA-48, CUP and ED).
const clearScreen = "\x1b[H\x1b[2J"

func (c *statusCommand) print(m *Main, s *status) error {
	if c.JSON {
		if c.Watch { // one line each time
			return json.NewEncoder(m.Stdout).Encode(s)
		}
		return printJSON(m.Stdout, s)
	}
	var page bytes.Buffer // written at once, so that a terminal does not flicker
	if c.Watch && isTerminal(m.Stdout) {
		page.WriteString(clearScreen)
	}
	if c.Watch {
		fmt.Fprintf(&page, "\n%s, every %v; Ctrl-C ends it\n", s.At.Format(time.RFC3339), c.Interval)
	}
	if err := s.write(&page); err != nil {
		return err
	}
	_, err := page.WriteTo(m.Stdout)
	return err
}

// abbreviated is the beginning of a commit or a digest, or "-" if it is empty. regedge version and --json show it
// whole.
func abbreviated(hex string) string {
	if hex == "" {
		return "-"
	}
	return hex[:min(len(hex), 8)]
}

// write prints the tables.
func (s *status) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(table, "NODE", "STATE", "ADDRESS", "RELEASE", "REGISTRY", "ACCESS", "LEASED", "UNSETTLED", "VERSION", "COMMIT", "COMPONENT", "REPORTED", "SEEN")
	for _, n := range s.Nodes {
		r := n.Report
		if r == nil {
			r = &writer.Report{Address: "-", Release: "-", Version: "-"}
		}
		row(table, n.Name, n.state(), r.Address, r.Release, lag(r, "registry"), lag(r, "access"), n.Leased, unsettled(n.Report), r.Version, abbreviated(r.Commit), abbreviated(r.Component), s.reported(n.Report), seen(n.Node))
	}
	if len(s.Releases) > 0 {
		row(table)
		row(table, "RELEASE", "PUSHED", "COMPANIES", "LLPS", "DIRECTORS", "APPOINTMENTS", "PARTNERS")
		for _, r := range s.Releases {
			row(table, r.ID, r.Pushed.Format(time.RFC3339), r.Companies, r.LLPs, r.Directors, r.Appointments, r.Partners)
		}
	}
	if s.empty {
		row(table)
		row(table, "No release has been pushed to the registry yet.")
	}
	err := table.Flush()
	if err == nil && len(s.Releases) > 0 {
		_, err = fmt.Fprint(w, lacking(&s.Releases[0]))
	}
	if err == nil && len(s.Findings) > 0 {
		fmt.Fprintln(w)
		err = writeFindings(w, s.Findings)
	}
	return err
}

// lacking says what lookups answer while the current release has no directors or partners.
func lacking(r *push.Release) string {
	held := importer.Held{Companies: r.Companies, LLPs: r.LLPs, Directors: r.Directors, Appointments: r.Appointments, Partners: r.Partners}
	if text := held.Lacking(); text != "" {
		return "\n" + text
	}
	return ""
}

// reported is the age of a node's last report.
func (s *status) reported(r *writer.Report) string {
	switch {
	case r == nil:
		return "never"
	case s.At.Sub(r.At) > reportLate:
		return s.ago(r.At) + " (old)"
	}
	return s.ago(r.At)
}

// unsettled is the number of charges in an edge's last report that the writer has not acknowledged.
func unsettled(r *writer.Report) string {
	if r == nil {
		return "-"
	}
	return strconv.FormatInt(r.Unsettled, 10)
}

func (n *nodeStatus) state() string {
	if n.Live && n.Report != nil && n.Report.Ready != "" {
		return "not ready: " + n.Report.Ready
	}
	return nodeState(n.Node)
}

// lag is the age of a replica, - when there is none.
func lag(r *writer.Report, database string) string { return cmp.Or(r.Lag(database), "-") }
