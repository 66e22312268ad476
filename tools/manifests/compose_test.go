package manifests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// built is the program of this tree.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "regedge")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "regedge")
	command := exec.Command("go", "build", "-C", "../..", "-o", program, "./host")
	command.Stderr = os.Stderr
	return program, command.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := built(); err == nil {
		os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// regedge runs the program, and returns what it prints.
func regedge(t *testing.T, args ...string) string {
	t.Helper()
	program, err := built()
	require.NoError(t, err)
	out, err := exec.Command(program, args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// loadCompose reads the compose file, with what setup.sh makes beside it.
func loadCompose(t *testing.T) *types.Project {
	t.Helper()
	dir := t.TempDir()
	content, err := os.ReadFile("../../deploy/compose/compose.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "compose.yaml"), content, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "secrets"), 0o700))
	for _, name := range []string{"centre", "east", "west"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "secrets", name+".env"), []byte("REGEDGE_TOKEN=x\n"), 0o600))
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: dir, ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml")}}, Environment: types.Mapping{},
	})
	require.NoError(t, err, "compose's schema")
	return project
}

func TestTheComposeFileFitsItsSchema(t *testing.T) {
	project := loadCompose(t)
	require.ElementsMatch(t, []string{"centre", "edge-east", "edge-west"}, project.ServiceNames())
	for name, s := range project.Services {
		require.True(t, s.ReadOnly, name)
		require.Equal(t, "65532:65532", s.User, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Contains(t, s.SecurityOpt, "no-new-privileges:true", name)
		require.NotZero(t, s.MemLimit, name)
		require.Equal(t, []string{"CMD", "/usr/local/bin/regedge", "probe"}, []string(s.HealthCheck.Test), name)
		require.Contains(t, regedge(t, s.HealthCheck.Test[2], "--help"), "probe")
		require.Equal(t, "x", *s.Environment["REGEDGE_TOKEN"], name)
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, name)
		}
	}
}

// TestEachComposedEdgeHasAStateOfItsOwn: two with one token, or on one volume, would fork each other; and no container
// gets the keys that sign.
func TestEachComposedEdgeHasAStateOfItsOwn(t *testing.T) {
	content, err := os.ReadFile("../../deploy/compose/compose.yaml")
	require.NoError(t, err)
	ports := map[string]string{"centre": "8081:8081", "edge-east": "8080:8080", "edge-west": "8082:8080"}
	for name, s := range loadCompose(t).Services {
		place := strings.TrimPrefix(name, "edge-")
		mounts := map[string]types.ServiceVolumeConfig{}
		for _, m := range s.Volumes {
			mounts[m.Target] = m
		}
		require.Len(t, mounts, 2, name)
		require.Equal(t, place, mounts["/var/lib/regedge"].Source, name)
		require.Regexp(t, `/secrets/`+place+`$`, mounts["/run/regedge/trust"].Source, name)
		require.True(t, mounts["/run/regedge/trust"].ReadOnly, name)
		require.Equal(t, 1, strings.Count(string(content), "secrets/"+place+".env"), name)
		require.Len(t, s.Ports, 1, name)
		require.Equal(t, ports[name], fmt.Sprintf("%s:%d", s.Ports[0].Published, s.Ports[0].Target), name)

		require.Equal(t, types.RestartPolicyAlways, s.Restart, name)
		require.GreaterOrEqual(t, time.Duration(*s.StopGracePeriod), 30*time.Second, "%s reports its rest", name)
		require.GreaterOrEqual(t, time.Duration(*s.HealthCheck.StartPeriod), 10*time.Minute, "%s starts, as its unit", name)
		if name != "centre" {
			require.Equal(t, types.ServiceConditionHealthy, s.DependsOn["centre"].Condition, name)
		}
	}
}

// TestTheImagesAreConfined: they run as the user that owns their state, are asked whether they are well, and start by
// the script of their place.
func TestTheImagesAreConfined(t *testing.T) {
	content, err := os.ReadFile("../../deploy/container/Containerfile")
	require.NoError(t, err)
	stages := map[string]string{}
	name := ""
	for line := range strings.Lines(string(content)) {
		if from := regexp.MustCompile(`^FROM (\S+) AS (\S+)`).FindStringSubmatch(line); from != nil {
			name = from[2]
			stages[name] = stages[from[1]]
		}
		if !strings.HasPrefix(line, "#") {
			stages[name] += line
		}
	}
	for image, port := range map[string]string{"centre": "8081", "edge": "8080"} {
		for _, line := range []string{
			"USER 65532:65532", "VOLUME /var/lib/regedge", "COPY --chown=65532:65532 state /var/lib/regedge",
			"HEALTHCHECK --interval=10s --timeout=5s --start-period=10m CMD [\"/usr/local/bin/regedge\", \"probe\"]",
			"COPY --chmod=755 " + image + ".sh /usr/local/bin/start", "ENTRYPOINT [\"/usr/local/bin/start\"]",
			"ENV REGEDGE_LISTEN=0.0.0.0:" + port, "COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt",
			"ENV HOME=/tmp RUST_LOG=warn",
		} {
			require.Contains(t, stages[image], line+"\n", image)
		}
		require.Regexp(t, `(?m)^EXPOSE `+port+`\b`, stages[image], image)
		require.NotContains(t, stages[image], "USER root", image)
	}
	require.Contains(t, stages["centre"], "EXPOSE 8081 5181 5182\n", "edges replicate from it")
}

// TestTheStartScriptsKnowTheProgram: each flag of the scripts in the images is one of its command.
func TestTheStartScriptsKnowTheProgram(t *testing.T) {
	for _, name := range []string{"centre", "edge"} {
		content, err := os.ReadFile("../../deploy/container/" + name + ".sh")
		require.NoError(t, err)
		text := strings.ReplaceAll(string(content), "\\\n", " ")
		commands := 0
		for line := range strings.Lines(text) {
			_, call, ok := strings.Cut(line, "regedge ")
			if !ok || strings.HasPrefix(line, "#") || !strings.Contains(call, "--") {
				continue
			}
			commands++
			var args []string
			for word := range strings.FieldsSeq(call) {
				if len(args) == 0 || strings.HasPrefix(word, "--") {
					args = append(args, word)
				}
			}
			knows(t, args)
		}
		require.Equal(t, 2, commands, name)
	}
}

// TestAComposedServiceRunsItsImage: that of its kind, which finds the centre by its name and has a folder for what does not
// last; and who waits for it hears soon that it is well.
func TestAComposedServiceRunsItsImage(t *testing.T) {
	for name, s := range loadCompose(t).Services {
		kind, _, _ := strings.Cut(name, "-")
		require.Regexp(t, `^regedge-`+kind+`:`, s.Image, name)
		require.Equal(t, types.StringList{"/tmp:size=64m"}, s.Tmpfs, "%s: HOME is /tmp", name)
		require.LessOrEqual(t, time.Duration(*s.HealthCheck.Interval), 10*time.Second, name)
		require.NotNil(t, s.HealthCheck.Timeout, name)
		require.GreaterOrEqual(t, *s.HealthCheck.Timeout, types.Duration(4*time.Second), "%s: longer than the 3 s of regedge probe, which then says why", name)
		require.LessOrEqual(t, *s.HealthCheck.Timeout, *s.HealthCheck.Interval, name)
		if kind == "edge" {
			require.NotNil(t, s.Environment["CENTRE"], name)
			require.Equal(t, "centre", *s.Environment["CENTRE"], name)
		}
	}
}
