package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"regedge/host/pki"
	"regedge/host/sqlite"
	"regedge/internal/testkit"
	"regedge/replicate/registry/sqld"
)

// Edge is an edge with its replicas. Its Process is the edge's own.
type Edge struct {
	*testkit.Process
	Name     string
	Place    Place
	URL      string // base URL of the lookups
	Metrics  string // URL of the metrics
	Replicas map[string]*sqld.Server
	besides  []*sqlite.Beside // readers of the replicas' files
	gates    []*Gate
	links    map[string]*Gate // between the replicas and their primaries, by database
}

// AddEdge registers an edge at the writer and starts its replicas and the edge itself. It does
// not wait until the edge is ready: an edge is not ready before a registry was pushed.
func (c *Cluster) AddEdge(ctx context.Context, name string) (*Edge, error) {
	return c.AddEdgeAt(ctx, name, Place{})
}

// AddEdgeAt is AddEdge in another network, whose Host this process must be able to reach.
func (c *Cluster) AddEdgeAt(ctx context.Context, name string, place Place) (*Edge, error) {
	e := &Edge{Name: name, Place: place, Replicas: make(map[string]*sqld.Server), links: make(map[string]*Gate)}
	c.Edges = append(c.Edges, e)
	if err := c.startEdge(ctx, e, len(c.Edges)-1); err != nil {
		return nil, fmt.Errorf("start edge %s: %w", name, err)
	}
	return e, nil
}

func (c *Cluster) startEdge(ctx context.Context, e *Edge, n int) error {
	node, err := c.Client.AddNode(ctx, e.Name)
	if err != nil {
		return err
	}
	tls, err := c.certificate("edge-" + e.Name)
	if err != nil {
		return err
	}
	toWriter, err := e.gate(c.Writer)
	if err != nil {
		return err
	}
	lookups, err := c.lookups(e, n)
	if err != nil {
		return err
	}
	metrics, err := c.address(e.Place)
	if err != nil {
		return err
	}
	e.URL, e.Metrics = "http://"+lookups, "http://"+metrics+"/metrics"
	args := []string{
		"edge", "--listen", lookups, "--metrics", metrics, "--log", "errors",
		"--writer", "http://" + toWriter.Address(), "--state", c.path("edge-" + e.Name),
	}
	env := []string{"REGEDGE_TOKEN=" + node.Token}
	for _, database := range pki.Databases {
		replica, token, err := c.startReplica(ctx, e, database, tls)
		if err != nil {
			return err
		}
		args = append(args, "--"+database, replica.URL(), "--"+database+"-replica", replica.Dir)
		env = append(env, "REGEDGE_"+strings.ToUpper(database)+"_TOKEN="+token)
	}
	e.Process = &testkit.Process{
		Program: c.Regedge, Args: append(args, c.EdgeFlags...), Env: env, Log: c.Log("edge-" + e.Name), Enter: e.Place.Enter,
	}
	return e.Start()
}

// lookups is the address on which the n-th edge answers lookups.
func (c *Cluster) lookups(e *Edge, n int) (string, error) {
	if n < len(c.Lookups) {
		return c.Lookups[n], nil
	}
	return c.address(e.Place)
}

// startReplica starts the edge's replica of a database, and returns it with the edge's token.
func (c *Cluster) startReplica(ctx context.Context, e *Edge, database string, tls *sqld.TLSFiles) (*sqld.Server, string, error) {
	token, err := c.trust.Token(database, pki.ReadOnly, pki.ReadTokenLife)
	if err != nil {
		return nil, "", err
	}
	gate, err := e.gate(c.Primaries[database].GRPC)
	if err != nil {
		return nil, "", err
	}
	e.links[database] = gate
	name := "replica-" + e.Name + "-" + database
	s := &sqld.Server{Config: sqld.Config{
		Program: c.Sqld, Dir: c.path(name), TLS: tls, Primary: "https://" + gate.Address(),
		JWTKeyFile: c.trust.ReplicaKeyFile(database), Log: c.Log(name), Enter: e.Place.Enter,
	}}
	if e.Place.Enter == nil { // the gate would be outside of the edge's network
		s.Relay, s.Link = true, new(sqld.TLSFiles)
		if s.Link.CA, s.Link.Cert, s.Link.Key, err = pki.Link(c.path("relay-" + name)); err != nil {
			return nil, "", err
		}
		beside := sqlite.OpenBeside(sqld.File(s.Dir))
		e.besides = append(e.besides, beside)
		if s.Reads, err = c.reads(name, database, beside); err != nil {
			return nil, "", err
		}
	}
	if s.HTTP, err = c.address(e.Place); err != nil {
		return nil, "", err
	}
	e.Replicas[database] = s
	if err := s.Start(); err != nil {
		return nil, "", err
	}
	return s, token, s.Await(ctx, token)
}

// reads is the gate in front of a replica's query port, as in regedge replica.
func (c *Cluster) reads(name, database string, held sqld.Held) (*sqld.Reads, error) {
	admit, err := pki.Verifier(c.trust.ReplicaKeyFile(database), time.Now)
	if err != nil {
		return nil, err
	}
	keyFile, token, err := pki.ReadLink(c.path("link-"+name), time.Now)
	return &sqld.Reads{KeyFile: keyFile, Token: token, Admit: admit, Held: held}, err
}

// gate makes a gate of the edge to an address at the centre.
func (e *Edge) gate(target string) (*Gate, error) {
	g, err := newGate(e.Place, target)
	if err == nil {
		e.gates = append(e.gates, g)
	}
	return g, err
}

// Replicated is the number of bytes that went between the edge's replica of a database and its primary.
func (e *Edge) Replicated(database string) int64 { return e.links[database].Passed() }

// Cut cuts the network between the edge and the centre: the edge's sync and its replicas.
func (e *Edge) Cut() {
	for _, g := range e.gates {
		g.Shut()
	}
}

// Mend undoes Cut.
func (e *Edge) Mend() {
	for _, g := range e.gates {
		g.Open()
	}
}

// Ready waits until the edge is ready, or ctx is done.
func (e *Edge) Ready(ctx context.Context) error { return e.Await(ctx, e.URL+"/readyz") }
