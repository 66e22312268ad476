package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"regedge/host/pki"
	"regedge/internal/cluster"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/writer"
	"regedge/schema/sample"
)

// readerLife is how long the printed operators' token is good.
const readerLife = 30 * 24 * time.Hour

// seed gives a cluster the sample registry, two edges and an account, and returns the text that
// tells a person how to use it.
func seed(ctx context.Context, c *cluster.Cluster) (greeting string, err error) {
	registry := filepath.Join(c.Dir, "registry.db")
	if _, err := sample.Import(ctx, registry, nil); err != nil {
		return "", err
	}
	args, env, err := c.PushArgs(registry)
	if err != nil {
		return "", err
	}
	push := exec.CommandContext(ctx, c.Regedge, args...)
	push.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	if out, err := push.CombinedOutput(); err != nil {
		return "", fmt.Errorf("push: %w: %s", err, out)
	}
	key, err := account(ctx, c.Client)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"east", "west"} {
		edge, err := c.AddEdge(ctx, name)
		if err != nil {
			return "", err
		}
		if err := edge.Ready(ctx); err != nil {
			return "", err
		}
	}
	reader, err := c.Client.AddToken(ctx, "make-cluster", writer.RoleRead, readerLife)
	if err != nil {
		return "", err
	}
	return greet(c, args, env, key, reader.Token)
}

// account creates an account with credits and a key.
func account(ctx context.Context, w *writer.Client) (key string, err error) {
	made, err := w.AddAccount(ctx, "Example", "", "scale")
	if err != nil {
		return "", err
	}
	if _, err := w.ChangeCredits(ctx, made.ID, writer.CreditChange{Amount: 1_000_000}); err != nil {
		return "", err
	}
	secret, err := w.AddKey(ctx, made.ID, "")
	return secret.Secret, err
}

func greet(c *cluster.Cluster, push, env []string, key, status string) (string, error) {
	reader, err := c.Token("registry", pki.ReadOnly)
	if err != nil {
		return "", err
	}
	var edges strings.Builder
	for _, e := range c.Edges {
		fmt.Fprintf(&edges, "  edge %-6s %s   metrics %s\n", e.Name, e.URL, e.Metrics)
	}
	return fmt.Sprintf(`A cluster runs in %[1]s; make cluster-down stops it. Logs are in its folder log.

  writer      %[2]s
  registry    %[3]s (primary)
  access      %[4]s (primary)
%[5]s
Look something up at either edge:

  curl -H 'Authorization: Bearer %[6]s' %[7]s/v1/companies/%[8]s

See how the edges are (both tokens may only read):

  export REGEDGE_WRITER=%[2]s REGEDGE_TOKEN=%[9]s
  %[10]s status --registry %[15]s --registry-token %[11]s

Change the registry and push it, then roll back:

  export %[12]s
  %[10]s %[13]s --dry-run
  %[10]s rollback %[14]s
`, c.Dir, c.WriterURL(), c.Primaries["registry"].URL(), c.Primaries["access"].URL(), edges.String(),
		key, c.Edges[0].URL, sampletest.CompanyEveryField, status, c.Regedge, reader,
		strings.Join(env, " "), strings.Join(push, " "), strings.Join(push[2:], " "), c.Edges[0].Replicas["registry"].URL()), nil
}
