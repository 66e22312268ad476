package cluster_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/push"
)

// inStepAge is the greatest age, in seconds, of a replica that follows: the primary has a heartbeat
// each second, and the edge reads its age once a second.
const inStepAge = 2.5

// inStep waits until every edge is ready and reads, from the replicas' files, what was written after
// this call.
func (f *fixture) inStep() {
	f.t.Helper()
	since := time.Now()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for _, e := range f.Edges {
		require.NoError(f.t, e.Ready(ctx))
		require.Eventually(f.t, func() bool { return follows(e.Metrics, since) }, patience, 20*time.Millisecond, "%s follows by its files", e.Name)
	}
}

// follows reports, by an edge's metrics, whether both replicas have a heartbeat that is later than
// since.
func follows(metrics string, since time.Time) bool {
	asked := time.Now()
	page, err := get(metrics, "")
	if err != nil {
		return false
	}
	young := 0
	for _, age := range ages.FindAllStringSubmatch(page, -1) {
		if seconds, err := strconv.ParseFloat(age[1], 64); err == nil && seconds >= 0 && seconds < min(inStepAge, asked.Sub(since).Seconds()) {
			young++
		}
	}
	return young == 2 && !fallback.MatchString(page)
}

// ages matches the metrics that say how old a replica is.
var ages = regexp.MustCompile(`(?m)^regedge_replica_age_seconds\{.*\} (.*)$`)

// fallback matches the metrics of an edge that reads an endpoint.
var fallback = regexp.MustCompile(`(?m)^regedge_replica_fallback\{.*\} 1$`)

// statusShowsRelease waits until regedge status shows every edge with the current release.
func (f *fixture) statusShowsRelease() {
	f.t.Helper()
	token, err := f.Token("registry", pki.ReadWrite)
	require.NoError(f.t, err)
	release := f.release()
	require.Eventually(f.t, func() bool {
		out, err := f.command([]string{
			"status", "--json", "--writer", f.WriterURL(), "--registry", f.Primaries["registry"].URL(),
		}, []string{"REGEDGE_TOKEN=" + f.OperatorToken, "REGEDGE_REGISTRY_TOKEN=" + token}).Output()
		require.NoError(f.t, err)
		var status struct {
			Nodes []struct {
				Name   string
				Live   bool
				Report *writer.Report
			}
			Releases []push.Release
		}
		require.NoError(f.t, json.Unmarshal(out, &status))
		require.Equal(f.t, release, status.Releases[0].ID)
		require.Len(f.t, status.Nodes, len(f.Edges))
		for _, n := range status.Nodes {
			if n.Report == nil || n.Report.Release != release || n.Report.Ready != "" || !n.Live {
				return false
			}
			for _, r := range n.Report.Replicas {
				if r.AgeMillis < 0 || r.Fallback {
					return false
				}
			}
		}
		return true
	}, patience, 200*time.Millisecond)
}

// get reads a page.
func get(url, token string) (string, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
