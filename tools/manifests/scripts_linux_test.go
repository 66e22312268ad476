package manifests

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// noted stands for regedge in a container: it notes how it runs and how it ends,
// and lasts as long as its file.
const noted = `#!/bin/bash
trap 'echo "$1 ends" >>"$LOG"; exit 0' TERM
echo "$* mirror:$REGEDGE_MIRROR$REGEDGE_MIRROR_UPLOAD" >"$RUN/$1$$"
while [ -e "$RUN/$1$$" ]; do sleep 0.05; done
exit 7
`

// container runs the start script of an image with noted in place of the program.
func container(t *testing.T, name string) (script *exec.Cmd, run, log string) {
	t.Helper()
	dir := t.TempDir()
	run, log = filepath.Join(dir, "run"), filepath.Join(dir, "log")
	require.NoError(t, os.Mkdir(run, 0o700))
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge"), []byte(noted), 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	script = exec.CommandContext(ctx, "bash", "../../deploy/container/"+name+".sh")
	script.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "LOG="+log, "RUN="+run, "CENTRE=centre", "DATA="+dir, "TRUST="+dir,
		"REGEDGE_MIRROR=address", "REGEDGE_MIRROR_UPLOAD=command")
	require.NoError(t, script.Start())
	require.Eventually(t, func() bool {
		return len(running(t, run)) == 3 && catches(t, script.Process.Pid, syscall.SIGTERM)
	}, 30*time.Second, 10*time.Millisecond)
	return script, run, log
}

// catches reports whether a process has a handler for a signal (proc_pid_status(5), SigCgt).
func catches(t *testing.T, pid int, signal syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, mask, ok := strings.Cut(string(status), "\nSigCgt:\t")
	require.True(t, ok)
	mask, _, _ = strings.Cut(mask, "\n")
	handled, err := strconv.ParseUint(mask, 16, 64)
	require.NoError(t, err)
	return handled&(1<<(signal-1)) != 0
}

func running(t *testing.T, run string) (files []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(run, "*"))
	require.NoError(t, err)
	return files
}

// TestAContainerEndsWithAnyOfItsProcesses, with its code, and ends the others: what restarts it sees a failure.
func TestAContainerEndsWithAnyOfItsProcesses(t *testing.T) {
	for name, part := range map[string]string{"centre": "primary", "edge": "replica"} {
		script, run, log := container(t, name)
		for _, file := range running(t, run) {
			if strings.HasPrefix(filepath.Base(file), part) {
				require.NoError(t, os.Remove(file))
				break
			}
		}
		var ended *exec.ExitError
		require.ErrorAs(t, script.Wait(), &ended, name)
		require.Equal(t, 7, ended.ExitCode(), name)
		said, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(said), "ends"), "%s: %s", name, said)
	}
}

// TestOnlyTheRegistryIsMirrored: the access database holds hashes of keys.
func TestOnlyTheRegistryIsMirrored(t *testing.T) {
	script, run, _ := container(t, "centre")
	primaries := 0
	for _, file := range running(t, run) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		said := string(content)
		if strings.HasPrefix(said, "primary ") {
			primaries++
			require.Equal(t, strings.Contains(said, "/primary-registry "), strings.Contains(said, "mirror:addresscommand"), said)
		}
	}
	require.Equal(t, 2, primaries)
	require.NoError(t, script.Process.Signal(syscall.SIGTERM))
	_ = script.Wait()
}

// TestAContainerEndsItsServiceFirst: what it has to tell its databases reaches them.
func TestAContainerEndsItsServiceFirst(t *testing.T) {
	for name, service := range map[string]string{"centre": "writer", "edge": "edge"} {
		script, _, log := container(t, name)
		require.NoError(t, script.Process.Signal(syscall.SIGTERM))
		_ = script.Wait()
		said, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Equal(t, 3, strings.Count(string(said), "ends"), "%s: %s", name, said)
		require.True(t, strings.HasPrefix(string(said), service+" ends\n"), "%s: %s", name, said)
	}
}

// TestSetupKeepsItsSecrets: its own to their owner, and for a container only what that needs.
func TestSetupKeepsItsSecrets(t *testing.T) {
	program, err := built()
	require.NoError(t, err)
	dir := t.TempDir()
	secrets := filepath.Join(dir, "secrets")
	// Without a writer that knows nodes: what a node is given, as regedge node add does it.
	stand := filepath.Join(dir, "regedge")
	require.NoError(t, os.WriteFile(stand, []byte(`#!/bin/sh
if [ "$1 $2" != "node add" ]; then exec `+program+` "$@"; fi
`+program+` trust machine "edge-$3" --trust "$5" --host "$3" >/dev/null
printf 'reg_node_%s\nregistry  r\naccess  a\n' "$3"
`), 0o700))
	setup := exec.Command("sh", "../../deploy/compose/setup.sh")
	setup.Env = append(os.Environ(), "SECRETS="+secrets, "REGEDGE="+stand, "COMPOSE=true")
	out, err := setup.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "reg_node_")
	given := 0
	require.NoError(t, filepath.WalkDir(secrets, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		where, err := filepath.Rel(secrets, path)
		require.NoError(t, err)
		folder, file := filepath.Split(where)
		switch {
		case entry.IsDir():
		case folder == "centre/" || folder == "east/" || folder == "west/":
			given++
			require.Equal(t, fs.FileMode(0o444), info.Mode(), where)
			require.NotContains(t, []string{"ca.key", "registry.key", "access.key", "registry-replica.key", "access-replica.key"}, file)
		case strings.HasSuffix(file, ".key") || strings.HasSuffix(file, ".env"):
			require.Equal(t, fs.FileMode(0o600), info.Mode(), where)
		}
		return nil
	}))
	require.Equal(t, 7+5+5, given)
	east, err := os.ReadFile(filepath.Join(secrets, "east.env"))
	require.NoError(t, err)
	require.Contains(t, string(east), "\nREGEDGE_TOKEN=reg_node_east\nREGEDGE_REGISTRY_TOKEN=r\nREGEDGE_ACCESS_TOKEN=a\n")
}
