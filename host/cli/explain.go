package cli

import (
	"context"
	"strings"
	"time"

	"regedge/host/doctor"
	"regedge/host/sqlite"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const (
	// reportLate is the age at which a node's report is late: it sends one every 2 s.
	reportLate = 10 * time.Second
	// replicaLate is the age at which a replica is reported as late: heartbeats come every second.
	replicaLate = 10 * time.Second
	// replicaOld is the age at which an edge is not ready, by the default of --max-lag.
	replicaOld = 10 * time.Minute
	// manyUnsettled is the number of unacknowledged charges that is reported.
	manyUnsettled = 10_000
)

// troubles says what is wrong with the writer. Nodes notice its failure only when their leases end.
func (c *statusCommand) troubles(ctx context.Context, client *writer.Client) []doctor.Finding {
	e := &doctor.Exam{Service: "centre", Now: time.Now, Timeout: registryPatience}
	e.WriterTroubles(ctx, c.Writer)
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	if health, err := client.Health(ctx); err == nil { // if it fails, WriterTroubles has said why
		e.Restoring(health)
	}
	return e.Findings
}

// explain says what is wrong with each node, and what to do about it.
func (s *status) explain() []doctor.Finding {
	var list []doctor.Finding
	for _, n := range s.Nodes {
		e := &doctor.Exam{Service: "node", Now: func() time.Time { return s.At }}
		s.explainNode(e, n)
		list = append(list, e.Findings...)
	}
	if len(s.Nodes) == 0 {
		e := &doctor.Exam{Service: "node"}
		e.Soon("nodes", "regedge node add NAME makes the first", "there is none")
		list = append(list, e.Findings...)
	}
	return list
}

func (s *status) explainNode(e *doctor.Exam, n nodeStatus) {
	switch r := n.Report; {
	case n.Retired:
		return
	case n.Fenced:
		e.Wrong(n.Name, "the writer's log says which message and why; when it is mended: regedge node token "+n.Name, "it is fenced: the writer refuses all that it sends")
	case n.Epoch == 0:
		e.Soon(n.Name, "start its edge, or regedge node retire "+n.Name, "it was never started")
	case !n.Live:
		e.Wrong(n.Name, "is its machine on, does it reach the writer? There: regedge doctor. It serves on its leases until they end; if it is gone for good: regedge node retire "+n.Name, "it is away, last seen %s; %d credits are leased to it", s.ago(n.Seen), n.Leased)
	case r == nil:
		e.Soon(n.Name, "wait some seconds; regedge meter, beside Spin, sends none", "it has not reported its state since the writer's start")
	case strings.Contains(r.Ready, meter.ErrSkew.Error()), strings.Contains(r.Ready, sqlite.ErrAhead.Error()):
		e.Wrong(n.Name, "compare date -u there and at the writer, and mend NTP on the machine that is wrong (timedatectl): with all nodes at once it is the writer's", "it is not ready: %s (as of %s)", r.Ready, s.ago(r.At))
	case r.Ready != "":
		e.Wrong(n.Name, "at its machine: regedge doctor", "it is not ready: %s (as of %s)", r.Ready, s.ago(r.At))
	case s.At.Sub(r.At) > reportLate:
		e.Wrong(n.Name, "at its machine: regedge doctor, and the log of regedge-edge", "its figures are old: it last reported %s", s.ago(r.At))
	default:
		e.OK(n.Name, "it is ready, has release %s, and reported %s", r.Release, s.ago(r.At))
	}
	if n.Stale > 0 {
		e.Soon(n.Name, "normal for a moment after it got a new epoch; if it stays, its old disk is gone: regedge node retire "+n.Name+" --old-epochs", "%d credits are leased under its earlier epochs", n.Stale)
	}
	if n.Report != nil && n.Live {
		s.explainReport(e, n.Name, n.Report)
	}
}

// explainReport says what a node that is in contact says about its databases and charges.
func (s *status) explainReport(e *doctor.Exam, name string, r *writer.Report) {
	for _, replica := range r.Replicas {
		age := time.Duration(replica.AgeMillis) * time.Millisecond
		switch {
		case replica.AgeMillis < 0:
			e.Wrong(name, "does the writer write heartbeats (its log)? Else its clock is ahead, or this node's behind: compare date -u on both machines, and mend NTP on the one that is wrong (timedatectl)", "the age of its %s is unknown", replica.Database)
		case age > replicaOld:
			e.Wrong(name, "all nodes at once: the writer or the primaries; one: its network, and the log of its regedge-replica@"+replica.Database, "its %s is %v behind", replica.Database, age.Round(time.Second))
		case age > replicaLate:
			e.Soon(name, "all nodes at once: the writer or the primaries; one: its network, and the log of its regedge-replica@"+replica.Database, "its %s is %v behind", replica.Database, age.Round(time.Second))
		}
		if replica.Fallback {
			e.Soon(name, "for some seconds after a start this is normal; else its log says why (\"reading the replica's endpoint\")", "it reads the endpoint of its %s in place of the file, which costs half a millisecond a lookup", replica.Database)
		}
	}
	if r.Unsettled > manyUnsettled {
		e.Soon(name, "does it reach the writer? RegedgeCommitsSlow in docs/operations.md", "the writer may not have %d of its charges", r.Unsettled)
	}
	if len(s.Releases) > 0 && r.Release != s.Releases[0].ID {
		has := "it answers from release " + r.Release
		if r.Release == "" {
			has = "it has no release"
		}
		e.Soon(name, "it copies it: wait, and look at the age of its "+string(schema.Registry), "%s, and %s is current", has, s.Releases[0].ID)
	}
}

// ago is the time since t, as of the status.
func (s *status) ago(t time.Time) string {
	if t.IsZero() {
		return "before the writer's start"
	}
	return max(s.At.Sub(t), 0).Round(time.Second).String() + " ago"
}
