package cluster_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/cluster"
	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
)

// single is a single-process service on a registry file.
func (f *fixture) single(name, registry string) *cluster.Edge {
	f.t.Helper()
	node, err := f.Client.AddNode(f.t.Context(), name)
	require.NoError(f.t, err)
	address := testkit.FreePort(f.t)
	access, err := f.Token("access", pki.ReadWrite)
	require.NoError(f.t, err)
	return f.run(&cluster.Edge{Name: name, URL: "http://" + address, Process: &testkit.Process{
		Program: f.Regedge, Log: f.log,
		Args: []string{
			"edge", "--listen", address, "--log", "errors", "--registry", registry, "--access", f.Primaries["access"].URL(),
			"--writer", f.WriterURL(), "--state", filepath.Join(f.t.TempDir(), name),
		},
		Env: []string{"REGEDGE_TOKEN=" + node.Token, tokenVariable("access") + "=" + access},
	}})
}

// tokenVariable is the environment variable with an edge's token of a database.
func tokenVariable(database string) string { return "REGEDGE_" + strings.ToUpper(database) + "_TOKEN" }

// run runs an edge until the test ends, and waits until it is ready.
func (f *fixture) run(e *cluster.Edge) *cluster.Edge {
	f.t.Helper()
	require.NoError(f.t, e.Start())
	f.t.Cleanup(e.Stop)
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	require.NoError(f.t, e.Ready(ctx))
	return e
}

// plan creates the plan load, whose limits no test reaches.
func (f *fixture) plan() {
	f.t.Helper()
	_, err := f.Client.SetPlan(f.t.Context(), writer.Plan{ID: "load", APIAccess: true, PerMinute: 1 << 30, MonthlyVolume: 1 << 40, Email: true, Phone: true})
	require.NoError(f.t, err)
}

// addAccount makes an account of that plan with credits to spare.
func (f *fixture) addAccount(n int) (id int64, key string, err error) {
	ctx := f.t.Context()
	account, err := f.Client.AddAccount(ctx, "load "+strconv.Itoa(n), "", "load")
	if err != nil {
		return 0, "", err
	}
	if _, err := f.Client.ChangeCredits(ctx, account.ID, writer.CreditChange{Amount: 1_000_000_000}); err != nil {
		return 0, "", err
	}
	made, err := f.Client.AddKey(ctx, account.ID, "")
	return account.ID, made.Secret, err
}

// account makes the plan and an account of it.
func (f *fixture) account(n int) (id int64, key string) {
	f.t.Helper()
	f.plan()
	id, key, err := f.addAccount(n)
	require.NoError(f.t, err)
	return id, key
}

// answer is an edge's response.
type answer struct {
	status        int
	release, data string // data is the body without what differs between requests
}

func fetch(client *http.Client, base, path, key string) (answer, error) {
	r, err := http.NewRequest(http.MethodGet, base+path, nil)
	if err != nil {
		return answer{}, err
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	data, _, _ := strings.Cut(string(body), `,"meta"`)
	data = strings.ReplaceAll(data, response.Header.Get("X-Request-Id"), "ID")
	data = strings.ReplaceAll(data, base, "BASE")
	return answer{response.StatusCode, response.Header.Get("X-Registry-Release"), data}, nil
}
