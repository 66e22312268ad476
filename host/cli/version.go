package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/service"
	"regedge/wasm"
)

// linkedVersion and linkedCommit are set by scripts/release.sh through the linker. A build without it has
// what Go recorded, which is nothing for a source tree without Git.
var linkedVersion, linkedCommit string

// build says which program this is.
type build struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`    // "" when nothing recorded it
	Component string `json:"component"` // SHA-256 of the component, in hex
	Go        string `json:"go"`
	Platform  string `json:"platform"`
}

// thisBuild is the build of this program.
var thisBuild = sync.OnceValue(func() build {
	digest := sha256.Sum256(wasm.Component)
	b := build{
		Version: linkedVersion, Commit: linkedCommit, Component: hex.EncodeToString(digest[:]),
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	recorded, ok := debug.ReadBuildInfo()
	if !ok {
		recorded = &debug.BuildInfo{}
	}
	if b.Version == "" && recorded.Main.Version != "(devel)" {
		b.Version = recorded.Main.Version
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	for _, setting := range recorded.Settings {
		if setting.Key == "vcs.revision" && b.Commit == "" {
			b.Commit = setting.Value
		}
	}
	return b
})

// programVersion is the program's version, devel when nothing recorded one.
func programVersion() string { return thisBuild().Version }

type versionCommand struct {
	JSON bool `env:"-" help:"Print JSON."`
}

// Run prints the version, the commit if it is known, and the digest of the component.
func (c *versionCommand) Run(m *Main) error {
	b := thisBuild()
	if c.JSON {
		encoder := json.NewEncoder(m.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(b)
	}
	commit := ""
	if b.Commit != "" {
		commit = " (" + b.Commit + ")"
	}
	_, err := fmt.Fprintf(m.Stdout, "regedge %s%s, %s %s\ncomponent sha256:%s\n", b.Version, commit, b.Go, b.Platform, b.Component)
	return err
}

// newMetrics returns the metrics of a service, with the program's build as one of them.
func newMetrics() *prometheus.Registry {
	metrics, b := service.NewMetrics(), thisBuild()
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "regedge_build_info",
		Help:        "1, with version, commit and the component's digest as labels.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "component": b.Component},
	}, func() float64 { return 1 }))
	return metrics
}
