package dashboard

import (
	"cmp"
	"context"
	"time"

	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/push"
)

type edgesData struct {
	Health   writer.Health
	Edges    []edgeView
	Releases []push.Release // the current one first
	Unknown  bool           // the registry's primary does not answer
}

// edgeView is an edge as the writer knows it, with its last report.
type edgeView struct {
	writer.Node
	State            string
	Class            string // of the state's badge
	Seen             string
	Why              string // the edge's reason why it is not ready
	Address          string
	Version, Release string
	Registry, Access string // age of the replicas
	Unsettled        string // charges that the writer may not have yet
}

// releasesTimeout bounds how long the page waits for the registry's primary.
const releasesTimeout = 2 * time.Second

func (d *Dashboard) edgesPage(v *visit) (answer, error) {
	ctx := v.r.Context()
	health, err := d.client.Health(ctx)
	if err != nil {
		return answer{}, err
	}
	nodes, err := d.client.Nodes(ctx)
	if err != nil {
		return answer{}, err
	}
	data := edgesData{Health: health}
	reports, err := d.reports(ctx)
	if err != nil {
		return answer{}, err
	}
	for _, n := range nodes {
		data.Edges = append(data.Edges, newEdgeView(n, reports[n.Name], d.now()))
	}
	if d.config.Releases != nil {
		limited, cancel := context.WithTimeout(ctx, releasesTimeout)
		defer cancel()
		if data.Releases, err = d.config.Releases(limited); err != nil {
			d.config.Logger.Warn("the releases can't be listed", "error", err)
			data.Unknown = true
		}
	}
	return answer{page: "edges", title: "Edges", data: data}, nil
}

// reports returns the edges' last reports, by name.
func (d *Dashboard) reports(ctx context.Context) (map[string]*writer.Report, error) {
	list, err := d.client.Reports(ctx)
	if err != nil {
		return nil, err
	}
	reports := make(map[string]*writer.Report, len(list))
	for i := range list {
		reports[list[i].Node] = &list[i]
	}
	return reports, nil
}

func newEdgeView(n writer.Node, r *writer.Report, now time.Time) edgeView {
	e := edgeView{Node: n, State: "away", Class: "warn", Seen: "not since the writer started"}
	if !n.Seen.IsZero() {
		e.Seen = ago(now.Sub(n.Seen))
	}
	if r != nil {
		e.Why, e.Address, e.Version, e.Release = r.Ready, r.Address, r.Version, r.Release
		e.Unsettled = number(r.Unsettled)
		e.Registry, e.Access = lagOf(r, "registry"), lagOf(r, "access")
	}
	switch {
	case n.Retired:
		e.State, e.Class, e.Why = "retired", "", ""
	case n.Fenced:
		e.State, e.Class, e.Why = "fenced", "bad", "the writer refuses its messages: see the writer's log"
	case n.Live && e.Why != "":
		e.State, e.Class = "not ready", "bad"
	case n.Live:
		e.State, e.Class = "live", "good"
	}
	return e
}

// lagOf is a replica's age.
func lagOf(r *writer.Report, database string) string {
	return cmp.Or(r.Lag(database), "none: a file")
}

// ago formats a duration in the past.
func ago(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return plural(int64(d/time.Second), "second") + " ago"
	case d < 2*time.Hour:
		return plural(int64(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return plural(int64(d/time.Hour), "hour") + " ago"
	}
	return plural(int64(d/(24*time.Hour)), "day") + " ago"
}
