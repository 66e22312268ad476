package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
