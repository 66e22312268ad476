package manifests

import (
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"
)

// machineOfFly has the keys of fly.toml that are used; any other fails the test.
type machineOfFly struct {
	App           string
	PrimaryRegion string `toml:"primary_region"`
	KillSignal    string `toml:"kill_signal"`
	KillTimeout   int    `toml:"kill_timeout"`
	Env           map[string]string
	Mounts        []struct{ Source, Destination string }
	Files         []struct {
		GuestPath  string `toml:"guest_path"`
		SecretName string `toml:"secret_name"`
	}
	HTTPService struct {
		InternalPort       int  `toml:"internal_port"`
		ForceHTTPS         bool `toml:"force_https"`
		AutoStopMachines   bool `toml:"auto_stop_machines"`
		AutoStartMachines  bool `toml:"auto_start_machines"`
		MinMachinesRunning int  `toml:"min_machines_running"`
		Concurrency        struct {
			Type      string
			SoftLimit int `toml:"soft_limit"`
			HardLimit int `toml:"hard_limit"`
		}
		Checks []struct {
			Method, Path, Interval, Timeout string
			GracePeriod                     string `toml:"grace_period"`
		}
	} `toml:"http_service"`
	Metrics struct {
		Port int
		Path string
	}
	VM []struct{ Size, Memory string }
}

// TestTheMachineOfFlyIsAnEdge: with the files, variables, ports and time to end that an edge needs, and never a second one.
func TestTheMachineOfFlyIsAnEdge(t *testing.T) {
	var m machineOfFly
	meta, err := toml.DecodeFile("../../deploy/fly/fly.toml", &m)
	require.NoError(t, err)
	require.Empty(t, meta.Undecoded())
	text, err := os.ReadFile("../../deploy/fly/fly.toml")
	require.NoError(t, err)

	require.Equal(t, "0.0.0.0:"+strconv.Itoa(m.HTTPService.InternalPort), m.Env["REGEDGE_LISTEN"])
	require.Equal(t, "0.0.0.0:"+strconv.Itoa(m.Metrics.Port), m.Env["REGEDGE_METRICS"])
	require.NotEqual(t, m.HTTPService.InternalPort, m.Metrics.Port)
	require.Equal(t, "/metrics", m.Metrics.Path)
	require.True(t, m.HTTPService.ForceHTTPS, "a key is in each request")
	require.False(t, m.HTTPService.AutoStopMachines || m.HTTPService.AutoStartMachines, "an edge reports, and holds leases, also without requests")
	require.Equal(t, 1, m.HTTPService.MinMachinesRunning)
	require.Equal(t, "requests", m.HTTPService.Concurrency.Type)
	require.Less(t, m.HTTPService.Concurrency.SoftLimit, m.HTTPService.Concurrency.HardLimit)
	require.Len(t, m.HTTPService.Checks, 1)
	check := m.HTTPService.Checks[0]
	require.Equal(t, []string{"GET", "/readyz"}, []string{check.Method, check.Path})
	grace, err := time.ParseDuration(check.GracePeriod)
	require.NoError(t, err)
	require.GreaterOrEqual(t, grace, 10*time.Minute, "it starts, as its unit")
	require.Equal(t, "SIGTERM", m.KillSignal)
	require.GreaterOrEqual(t, m.KillTimeout, 30, "it reports its rest")

	writer, err := url.Parse(m.Env["REGEDGE_WRITER"])
	require.NoError(t, err)
	require.Equal(t, []string{"https", m.Env["CENTRE"]}, []string{writer.Scheme, writer.Hostname()})
	help := regedge(t, "edge", "--help")
	for name := range m.Env {
		if strings.HasPrefix(name, "REGEDGE_") {
			require.Regexp(t, `\$`+name+`\b`, help)
		}
		require.NotRegexp(t, `TOKEN|KEY`, name, "a secret in a file of the repository")
	}
	for _, secret := range []string{"REGEDGE_TOKEN", "REGEDGE_REGISTRY_TOKEN", "REGEDGE_ACCESS_TOKEN"} {
		require.Regexp(t, `(?m)^#   fly secrets set .*\b`+secret+`=`, string(text))
	}

	require.Len(t, m.Mounts, 1)
	require.Equal(t, "/var/lib/regedge", m.Mounts[0].Destination)
	require.Regexp(t, `(?m)^#   fly volumes create `+m.Mounts[0].Source+` `, string(text))
	script, err := os.ReadFile("../../deploy/container/edge.sh")
	require.NoError(t, err)
	listed := regexp.MustCompile(`(?m)^#   /run/regedge/trust +(.*)$`).FindStringSubmatch(string(script))
	require.NotNil(t, listed)
	given := map[string]string{}
	for _, f := range m.Files {
		given[strings.TrimPrefix(f.GuestPath, "/run/regedge/trust/")] = f.SecretName
		require.Regexp(t, `(?m)^#   fly secrets set .*\b`+f.SecretName+`=`, string(text))
	}
	require.Len(t, given, len(m.Files))
	for file := range strings.SplitSeq(listed[1], ", ") {
		require.Equal(t, strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(file)), given[file], file)
		delete(given, file)
	}
	require.Empty(t, given, "files that no edge needs")
	require.Equal(t, "/run/regedge/trust/ca.crt", m.Env["SSL_CERT_FILE"])

	soft, ok := strings.CutSuffix(m.Env["GOMEMLIMIT"], "MiB")
	require.True(t, ok)
	most, err := strconv.Atoi(soft)
	require.NoError(t, err)
	require.Len(t, m.VM, 1)
	gigabytes, err := strconv.Atoi(strings.TrimSuffix(m.VM[0].Memory, "gb"))
	require.NoError(t, err)
	require.LessOrEqual(t, 2*most, gigabytes<<10, "both replicas have memory, too")
}
