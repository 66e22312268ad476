package manifests

import (
	"net/netip"
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

// readFly decodes fly.toml, and fails for a key that is none.
func readFly(t *testing.T) (m machineOfFly, meta toml.MetaData, text []byte) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/fly/fly.toml")
	require.NoError(t, err)
	meta, err = toml.Decode(string(text), &m)
	require.NoError(t, err)
	require.Empty(t, meta.Undecoded())
	return m, meta, text
}

// TestTheMachineOfFlyIsAnEdge: with the files, variables, ports and time to end that an edge needs, and never a second one.
func TestTheMachineOfFlyIsAnEdge(t *testing.T) {
	m, _, text := readFly(t)
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

// TestTheProxyOfFlySendsAnEdgeWhatItAnswers: no more than it takes at once, nothing soon after it is no longer ready, and
// with the address of the client, which the proxy alone is believed.
func TestTheProxyOfFlySendsAnEdgeWhatItAnswers(t *testing.T) {
	m, meta, text := readFly(t)
	for _, said := range []string{"auto_stop_machines", "auto_start_machines", "min_machines_running"} {
		require.True(t, meta.IsDefined("http_service", said), "%s is not left to what fly launch proposes", said)
	}
	most := regexp.MustCompile(`--max-in-flight=(\d+)`).FindStringSubmatch(regedge(t, "edge", "--help"))
	require.NotNil(t, most)
	inFlight, err := strconv.Atoi(most[1])
	require.NoError(t, err)
	require.LessOrEqual(t, m.HTTPService.Concurrency.HardLimit, inFlight, "more would get 503")
	require.Positive(t, m.HTTPService.Concurrency.SoftLimit)

	require.Len(t, m.HTTPService.Checks, 1)
	check := m.HTTPService.Checks[0]
	interval, err := time.ParseDuration(check.Interval)
	require.NoError(t, err)
	require.LessOrEqual(t, interval, 10*time.Second)
	timeout, err := time.ParseDuration(check.Timeout)
	require.NoError(t, err)
	require.GreaterOrEqual(t, timeout, 3*time.Second, "longer than readiness takes")
	require.LessOrEqual(t, timeout, interval)
	grace, err := time.ParseDuration(check.GracePeriod)
	require.NoError(t, err)
	require.LessOrEqual(t, grace, 10*time.Minute, "what never starts is told")
	require.LessOrEqual(t, m.KillTimeout, 300, "the longest that Fly gives")

	proxies := strings.Split(m.Env["REGEDGE_TRUSTED_PROXY"], ",")
	for _, proxy := range proxies {
		addresses, err := netip.ParsePrefix(proxy)
		require.NoError(t, err)
		require.Equal(t, addresses.Masked(), addresses)
		require.True(t, addresses.Addr().IsPrivate() && addresses.Bits() >= 12, "anybody could say that he is another: %s", addresses)
	}
	docs, err := url.Parse(m.Env["REGEDGE_DOCS_URL"])
	require.NoError(t, err)
	require.Equal(t, "https", docs.Scheme, "errors link to pages")
	writer, err := url.Parse(m.Env["REGEDGE_WRITER"])
	require.NoError(t, err)
	require.Equal(t, "8081", writer.Port(), "the writer's, as in every other manifest")

	require.True(t, strings.HasSuffix(m.App, "-"+m.PrimaryRegion), "an app is of one region")
	for _, region := range regexp.MustCompile(`--region ([a-z]+)`).FindAllStringSubmatch(string(text), -1) {
		require.Equal(t, m.PrimaryRegion, region[1], region[0])
	}
	require.Len(t, m.VM, 1)
	require.Regexp(t, `^(shared|performance)-cpu-?([2-9]|1\d)x$|^performance-([2-9]|1\d)x$`, m.VM[0].Size, "a replica that copies leaves a processor to lookups")
}
