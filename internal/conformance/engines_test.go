package conformance

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/host/engine"
	"regedge/host/server"
)

var update = flag.Bool("update", false, "rewrite the vectors with what the native engine answers; statuses must hold")

const (
	vectorDir = "../../testdata/vectors"
	// leastVectors is what the folder holds at least: a run that finds fewer is broken.
	leastVectors = 150
)

// engines are the ways to run the same request logic.
var engines = []struct {
	name  string
	start func(*testing.T, *world) *Kit
}{
	{"native", func(t *testing.T, w *world) *Kit {
		return w.serve(t, func(parts engine.Parts) server.Answerer { return engine.NewNative(parts) })
	}},
	{"wazero pooled", func(t *testing.T, w *world) *Kit { return w.serveComponent(t, engine.Limits{}) }},
	{"wazero fresh", func(t *testing.T, w *world) *Kit { return w.serveComponent(t, engine.Limits{Fresh: true}) }},
	{"V8", startV8},
}

func (w *world) serveComponent(t *testing.T, limits engine.Limits) *Kit {
	return w.serve(t, func(parts engine.Parts) server.Answerer {
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
			world := newWorld(t)
			kit := engine.start(t, world)
			kit.Outage = func(t *testing.T, part string) *Kit { return engine.start(t, world.without(t, part)) }
			rewrite := *update && engine.name == "native"
			for _, f := range files {
				t.Run(filepath.Base(f.path), func(t *testing.T) {
					got := kit.Run(t, f.File, !rewrite)
					if rewrite && !t.Failed() {
						sameStatuses(t, f.File, got)
						require.NoError(t, os.WriteFile(f.path, got.Format(), 0o644))
						*f.File = *got
					}
				})
			}
		})
	}
}

// vectorFile is a file of vectors and where it stands.
type vectorFile struct {
	*File
	path string
}

// readVectors reads all files in the order of their names: the clock that one advances
// is that of the ones after it.
func readVectors(t *testing.T) []vectorFile {
	paths, err := filepath.Glob(filepath.Join(vectorDir, "*.txt"))
	require.NoError(t, err)
	var files []vectorFile
	total := 0
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := Parse(bytes.NewReader(content))
		require.NoError(t, err, path)
		files = append(files, vectorFile{file, path})
		total += len(file.Vectors)
	}
	require.GreaterOrEqual(t, total, leastVectors, "vectors in %s", vectorDir)
	return files
}

// sameStatuses keeps -update from accepting another outcome: statuses are written by
// hand.
func sameStatuses(t *testing.T, want, got *File) {
	for i, v := range want.Vectors {
		for j, e := range v.Exchanges {
			require.Equal(t, e.Status, got.Vectors[i].Exchanges[j].Status, "%s: %s", v.Name, e.Request[0])
		}
	}
}

// startV8 runs the component on another runtime, which shares no code with the host.
func startV8(t *testing.T, w *world) *Kit {
	if w.full {
		t.Skip("skipped: how many requests are answered at once is for our host to say, not for the component")
	}
	dir := "../../testdata/jco"
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: the component on V8 needs node on PATH")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Skip("skipped: the component on V8 needs `make tools`, which installs its npm packages")
	}
	command := exec.Command(node, "serve.mjs", "--component", "../../wasm/registry.wasm",
		"--access", w.access, "--registry", w.registry, "--meter-url", w.serveMeter(t),
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
	return w.kit(strings.TrimSpace(strings.TrimPrefix(line, "listening ")), clientHeaderV8)
}

// clientHeaderV8 is the header in which the test tells the V8 server whom to take for the
// client, as the proxy in front of a host does.
const clientHeaderV8 = "X-Forwarded-For"
