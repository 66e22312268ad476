package conformance

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/host/engine"
	"regedge/host/server"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
)

var update = flag.Bool("update", false, "rewrite the vectors with the answers of the native engine; statuses must stay")

const (
	vectorDir = "testdata/vectors" // from the module's root
	// leastVectors is a lower bound of how many there are: a run that finds fewer is broken.
	leastVectors = 150
)

// engines are the ways to run the handler.
var engines = []struct {
	name      string
	component bool // it runs wasm/registry.wasm
	start     func(*testing.T, *testEnv) *Kit
}{
	{"native", false, func(t *testing.T, env *testEnv) *Kit {
		return env.serve(t, func(parts engine.Parts) server.Answerer { return engine.NewNative(parts) })
	}},
	{"wazero pooled", true, func(t *testing.T, env *testEnv) *Kit { return env.serveComponent(t, engine.Limits{}) }},
	{"wazero fresh", true, func(t *testing.T, env *testEnv) *Kit { return env.serveComponent(t, engine.Limits{Fresh: true}) }},
	{"V8", true, startV8},
}

func (env *testEnv) serveComponent(t *testing.T, limits engine.Limits) *Kit {
	return env.serve(t, func(parts engine.Parts) server.Answerer {
		component, err := engine.NewComponent(context.Background(), parts, limits)
		require.NoError(t, err)
		t.Cleanup(func() { component.Close(context.Background()) })
		return component
	})
}

func TestVectors(t *testing.T) {
	files := readVectors(t)
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			if engine.component {
				logStale(t)
			}
			kit := freshKit(t, engine.start)
			rewrite := *update && engine.name == "native"
			for _, f := range files {
				t.Run(filepath.Base(f.Path), func(t *testing.T) {
					got := kit.Run(t, f, !rewrite)
					if rewrite && !t.Failed() {
						sameStatuses(t, f, got)
						require.NoError(t, os.WriteFile(filepath.Join("../..", f.Path), got.Format(), 0o644))
						*f = *got
					}
				})
			}
		})
	}
}

// freshKit returns a kit of a host that start starts, which makes others in the same way.
func freshKit(t *testing.T, start func(*testing.T, *testEnv) *Kit) *Kit {
	env := newTestEnv(t)
	kit := start(t, env)
	kit.Fresh = func(t *testing.T) *Kit { return freshKit(t, start) }
	kit.Outage = func(t *testing.T, part string) *Kit { return start(t, env.without(t, part)) }
	return kit
}

// readVectors reads all files in the order of their names.
func readVectors(t *testing.T) []*File {
	paths, err := filepath.Glob(filepath.Join("../..", vectorDir, "*.txt"))
	require.NoError(t, err)
	var files []*File
	total := 0
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := Parse(bytes.NewReader(content))
		require.NoError(t, err, path)
		file.Path = filepath.Join(vectorDir, filepath.Base(path))
		files = append(files, file)
		total += len(file.Vectors)
	}
	require.GreaterOrEqual(t, total, leastVectors, "vectors in %s", vectorDir)
	return files
}

// sameStatuses keeps -update from changing a status: statuses are written by hand.
func sameStatuses(t *testing.T, want, got *File) {
	for i, v := range want.Vectors {
		for j, e := range v.Exchanges {
			require.Equal(t, e.Status, got.Vectors[i].Exchanges[j].Status, "%s: %s", v.Name, e.Request[0])
		}
	}
}

// startV8 runs the component on another runtime, which shares no code with this host.
func startV8(t *testing.T, env *testEnv) *Kit {
	if env.full {
		t.Skip("skipped: our host limits concurrent requests, not the component")
	}
	dir := "../../testdata/jco"
	node, err := exec.LookPath("node")
	if err != nil {
		testkit.MissingTool(t, "the component on V8 needs node on PATH")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		testkit.MissingTool(t, "the component on V8 needs `make tools`, which installs its npm packages")
	}
	command := exec.Command(node, "serve.mjs", "--component", "../../wasm/registry.wasm",
		"--access", env.access, "--registry", env.registry, "--meter-url", env.serveMeter(t),
		"--meter-token", meterToken, "--docs-url", docsURL, "--client-header", clientHeaderV8, "--port", "0")
	command.Dir, command.Stderr = dir, os.Stderr
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { input.Close(); command.Wait() })
	reader := bufio.NewReader(output)
	line, err := reader.ReadString('\n')
	require.NoError(t, err, "the V8 server did not start")
	go io.Copy(io.Discard, reader)
	return env.kit(strings.TrimSpace(strings.TrimPrefix(line, "listening ")), clientHeaderV8)
}

// clientHeaderV8 is the header from which the V8 server takes the client's address, as from a
// proxy.
const clientHeaderV8 = "X-Forwarded-For"

// TestHeaderNamesAreSpeltAsDocumented reads the bytes of an answer, since net/http, which reads
// those of the vectors, normalizes the spelling of names.
func TestHeaderNamesAreSpeltAsDocumented(t *testing.T) {
	for _, engine := range engines[:2] {
		t.Run(engine.name, func(t *testing.T) {
			kit := engine.start(t, newTestEnv(t))
			conn, err := net.Dial("tcp", kit.Address)
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "GET /v1/companies/%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n",
				sampletest.CompanyEveryField, ident.SandboxKey)
			require.NoError(t, err)
			answer, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Contains(t, string(answer), "HTTP/1.1 200 OK\r\n")
			for _, name := range []string{"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "X-Registry-Release"} {
				require.Contains(t, string(answer), "\r\n"+name+": ")
			}
		})
	}
}
