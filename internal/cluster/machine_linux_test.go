package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// machine is a machine with systemd of its own.
type machine struct {
	t      testing.TB
	files  string // its root, as seen from here
	first  string // the id of its first process
	before string // runs before each script
}

// bootMachine boots systemd beside this one (testdata/machine.sh). The test is
// skipped where that can't be done.
func bootMachine(t testing.TB, programs ...string) *machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped: only root can boot systemd in namespaces of its own")
	}
	for _, tool := range []string{"/lib/systemd/systemd", "ip", "curl", "openssl", "sqlite3"} {
		if _, err := exec.LookPath(tool); err != nil {
			testkit.MissingTool(t, err, ": make tools installs it")
		}
	}
	group := fmt.Sprintf("regedge-test-%d", os.Getpid())
	args := append([]string{"--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net",
		"sh", "testdata/machine.sh", t.TempDir(), group}, programs...)
	boots := exec.Command("unshare", args...)
	said := new(testkit.Log)
	boots.Stdout, boots.Stderr = said, said
	boots.Env = append(os.Environ(), "DISK="+t.TempDir())
	boots.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() { // its thread must live as long as the machine, which ends with it
		runtime.LockOSThread()
		started <- boots.Start()
		_ = boots.Wait()
		close(started)
	}()
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = boots.Process.Kill()
		<-started
		removeGroup(t, group)
	})
	m := &machine{t: t}
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		select {
		case <-started:
			t.Skip("skipped: systemd can't be booted here, which takes the rights to mount: ", said.String())
		default:
		}
		if m.first == "" {
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", boots.Process.Pid))
			m.first = strings.TrimSpace(string(children))
			m.files = filepath.Join("/proc", m.first, "root")
		} else if state, _ := m.try("systemctl is-system-running"); strings.HasPrefix(state, "running") || strings.HasPrefix(state, "degraded") {
			return m
		}
	}
	t.Skip("skipped: systemd does not come up in namespaces here: ", said.String())
	return nil
}

// removeGroup removes the control groups of a machine that has ended.
func removeGroup(t testing.TB, group string) {
	dir := t.TempDir()
	script := `mount -t cgroup2 cgroup2 "$1" || exit
for again in $(seq 100); do
    find "$1/$2" -depth -type d -exec rmdir {} + 2>/dev/null && exit
    sleep 0.1 # until the processes are gone
done
exit 1`
	out, err := exec.Command("unshare", "--mount", "sh", "-c", script, "sh", dir, group).CombinedOutput()
	if err != nil {
		t.Logf("control groups are left: %v: %s", err, out)
	}
}

// try runs a script of the shell as the machine's root. Before the machine has a root of its own it fails.
func (m *machine) try(script string) (said string, err error) {
	command := exec.Command("nsenter", "--target", m.first, "--mount", "--uts", "--ipc", "--pid", "--net", "--cgroup", "--root", "--wd",
		"bash", "-c", "test -e /machine || exit; cd /root; set -e\n"+m.before+script)
	command.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err = command.Run()
	return strings.TrimSpace(out.String()), err
}

// run requires that a script succeeds.
func (m *machine) run(script string) string {
	m.t.Helper()
	said, err := m.try(script)
	require.NoError(m.t, err, "%s\n%s\n%s", script, said, m.journal())
	return said
}

// until runs a script again and again until it succeeds.
func (m *machine) until(script string) string {
	m.t.Helper()
	var said string
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(200 * time.Millisecond) {
		if said, err = m.try(script); err == nil {
			return said
		}
	}
	require.NoError(m.t, err, "%s\n%s\n%s", script, said, m.journal())
	return ""
}

// journal is what the services have written.
func (m *machine) journal() string {
	said, err := m.try("journalctl --no-pager --output cat --unit 'regedge*'")
	if err != nil {
		return err.Error()
	}
	return said
}
