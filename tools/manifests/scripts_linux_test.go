package manifests

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
echo "$* mirror:$REGEDGE_MIRROR$REGEDGE_MIRROR_UPLOAD metrics:$REGEDGE_METRICS$REGEDGE_PPROF" >"$LOG.$$"
mv "$LOG.$$" "$RUN/$1$$"
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
		"REGEDGE_MIRROR=address", "REGEDGE_MIRROR_UPLOAD=command", "REGEDGE_METRICS=address", "REGEDGE_PPROF=yes")
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
	setUp := func() string {
		setup := exec.Command("sh", "../../deploy/compose/setup.sh")
		setup.Env = append(os.Environ(), "SECRETS="+secrets, "REGEDGE="+stand, "COMPOSE=true")
		out, err := setup.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.NotContains(t, setUp(), "reg_node_")
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
	require.Equal(t, "REGEDGE_WRITER=https://centre:8081\nREGEDGE_TOKEN=reg_node_east\nREGEDGE_REGISTRY_TOKEN=r\nREGEDGE_ACCESS_TOKEN=a\n"+
		"SSL_CERT_FILE=/run/regedge/trust/ca.crt\n", string(east))

	before := contents(t, secrets)
	for _, database := range []string{"registry", "access"} {
		token := regexp.MustCompile(`(?m)^REGEDGE_` + strings.ToUpper(database) + `_TOKEN=(.+)$`).FindStringSubmatch(before["centre.env"])
		require.NotNil(t, token, database)
		require.True(t, signed(t, before["centre/"+database+".pub"], token[1]), "the writer's token for %s", database)
	}
	setUp()
	require.Equal(t, before, contents(t, secrets), "run again, it keeps what is there")
}

// TestSetupGoesOnWhereItWasInterrupted: the keys are made, and a certificate is not.
func TestSetupGoesOnWhereItWasInterrupted(t *testing.T) {
	program, err := built()
	require.NoError(t, err)
	for _, machine := range []string{"primary", "writer"} {
		dir := t.TempDir()
		secrets, stand := filepath.Join(dir, "secrets"), filepath.Join(dir, "regedge")
		require.NoError(t, os.WriteFile(stand, []byte(`#!/bin/sh
if [ "$1 $2 $3" = "trust machine `+machine+`" ] && [ ! -e "$0.again" ]; then >"$0.again"; exit 1; fi
if [ "$1 $2" != "node add" ]; then exec `+program+` "$@"; fi
exit 3
`), 0o700))
		setUp := func() (int, string) {
			setup := exec.Command("sh", "../../deploy/compose/setup.sh")
			setup.Env = append(os.Environ(), "SECRETS="+secrets, "REGEDGE="+stand, "COMPOSE=true")
			out, _ := setup.CombinedOutput()
			return setup.ProcessState.ExitCode(), string(out)
		}
		code, said := setUp()
		require.Equal(t, 1, code, said)
		before := contents(t, secrets)
		code, said = setUp()
		require.Equal(t, 3, code, "it comes to the nodes: %s", said)
		after := contents(t, secrets)
		for path, content := range before {
			require.Equal(t, content, after[path], path)
		}
		for _, file := range []string{"centre/primary.crt", "centre/primary.key", "centre/writer.crt", "centre/writer.key"} {
			require.NotEmpty(t, after[file], "%s: %s", machine, file)
		}
	}
}

// TestSetupGivesANodeTheTokenThatAnInterruptedRunMade, by a real writer. The stand-in for compose reads the files of all
// services first, as compose does.
func TestSetupGivesANodeTheTokenThatAnInterruptedRunMade(t *testing.T) {
	program, err := built()
	require.NoError(t, err)
	dir := t.TempDir()
	secrets, stand, compose := filepath.Join(dir, "sec rets"), filepath.Join(dir, "regedge"), filepath.Join(dir, "compose")
	require.NoError(t, os.Mkdir(secrets, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(secrets, "centre.env"), []byte("REGEDGE_TOKEN=operators-token-of-a-test\n"), 0o600))
	require.NoError(t, os.WriteFile(stand, []byte(`#!/bin/sh
"`+program+`" "$@" || exit
[ "$1 $2 $3" != "node add west" ] || [ -e "$0.again" ] || { >"$0.again"; kill -9 $PPID; }
`), 0o700))
	require.NoError(t, os.WriteFile(compose, []byte(`#!/bin/sh
files=$(sed -n 's,.*env_file: .secrets/\(.*\)\],\1,p' compose.yaml)
[ "$(echo $files)" = "centre.env east.env west.env" ] || exit 4
for file in $files; do [ -e "$SECRETS/$file" ] || { echo "env file $file not found"; exit 5; }; done
`), 0o700))

	writer := exec.Command(program, "writer", "--listen", "127.0.0.1:0", "--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db"))
	writer.Env = append(os.Environ(), "REGEDGE_TOKEN=operators-token-of-a-test")
	log, err := writer.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, writer.Start())
	t.Cleanup(func() { _ = writer.Process.Kill(); _ = writer.Wait() })
	var address []string
	for lines := bufio.NewScanner(log); address == nil && lines.Scan(); {
		address = regexp.MustCompile(`"serving","address":"([^"]+)"`).FindStringSubmatch(lines.Text())
	}
	require.NotNil(t, address)
	go io.Copy(io.Discard, log)

	setUp := func() (string, error) {
		setup := exec.Command("sh", "../../deploy/compose/setup.sh")
		setup.Env = append(os.Environ(), "SECRETS="+secrets, "REGEDGE="+stand, "COMPOSE="+compose, "WRITER=http://"+address[1])
		out, err := setup.CombinedOutput()
		return string(out), err
	}
	said, err := setUp()
	require.Error(t, err, said)
	before := contents(t, secrets)
	require.NotEmpty(t, before["east.env"], said)
	require.Empty(t, before["west.env"], "its token is lost")
	said, err = setUp()
	require.NoError(t, err, said)
	after := contents(t, secrets)
	require.Equal(t, before["east.env"], after["east.env"])
	token := regexp.MustCompile(`(?m)^REGEDGE_TOKEN=(reg_node_.+)$`).FindStringSubmatch(after["west.env"])
	require.NotNil(t, token, after["west.env"])
	require.Contains(t, said, `"`+secrets+`/trust/ca.crt"`, "in quotes, to be pasted")
}

// contents are the files below a folder, by their paths.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	}))
	return files
}

// signed reports whether the key of a database signed a token.
func signed(t *testing.T, public, token string) bool {
	t.Helper()
	block, _ := pem.Decode([]byte(public))
	require.NotNil(t, block, public)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	require.NoError(t, err)
	end := strings.LastIndex(token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(token[end+1:])
	require.NoError(t, err)
	return ed25519.Verify(key.(ed25519.PublicKey), []byte(token[:end]), signature)
}

// TestProcessesOfAContainerWorkTogether, as those of a pod; and only the service serves metrics, since all would at one address.
func TestProcessesOfAContainerWorkTogether(t *testing.T) {
	for _, name := range []string{"centre", "edge"} {
		script, run, _ := container(t, name)
		processes := map[string]map[string]string{}
		for _, file := range running(t, run) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			words := strings.Fields(string(content))
			set := map[string]string{}
			for i, word := range words[:len(words)-1] {
				if flag, ok := strings.CutPrefix(word, "--"); ok {
					set[flag] = words[i+1]
				}
			}
			command := words[0]
			if dir, ok := set["dir"]; ok {
				command = filepath.Base(dir)
			}
			processes[command] = set
			require.Equal(t, command == "writer" || command == "edge", strings.Contains(string(content), "metrics:addressyes"), "%s", content)
		}
		require.Len(t, processes, 3, "%s: %v", name, processes)
		wired(t, processes)
		require.NoError(t, script.Process.Signal(syscall.SIGTERM))
		_ = script.Wait()
	}
}

// TestAnImageRunsOneCommandInstead where it is given one: a process a container, or the doctor.
func TestAnImageRunsOneCommandInstead(t *testing.T) {
	for _, name := range []string{"centre", "edge"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge"), []byte("#!/bin/sh\necho \"regedge $*\"\nexit 4\n"), 0o700))
		command := exec.Command("bash", "../../deploy/container/"+name+".sh", "doctor", "edge")
		command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		var ended *exec.ExitError
		require.ErrorAs(t, err, &ended, name)
		require.Equal(t, 4, ended.ExitCode(), name)
		require.Equal(t, "regedge doctor edge\n", string(out), name)
	}
}
