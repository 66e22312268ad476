package testkit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

const patience = 30 * time.Second

// shell is a process that runs a script of the shell.
func shell(t *testing.T, script string) *testkit.Process {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell: ", err)
	}
	p := &testkit.Process{Program: path, Args: []string{"-c", script}, Log: &testkit.Log{}}
	p.EndWith(t)
	return p
}

// logs waits until the process has written a text.
func logs(t *testing.T, p *testkit.Process, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.Tail(), text) }, patience, time.Millisecond, p.Tail())
}

func TestAProcessIsStartedAgainAfterItsEnd(t *testing.T) {
	p := shell(t, "echo started; sleep 60")
	require.Zero(t, p.PID())
	p.Stop()
	for range 2 {
		require.NoError(t, p.Start())
		require.ErrorContains(t, p.Start(), "running already")
		require.Positive(t, p.PID())
		p.Kill()
		require.Zero(t, p.PID())
	}
	require.ErrorIs(t, p.Signal(os.Interrupt), os.ErrProcessDone)
}

func TestStopLetsAProcessFinish(t *testing.T) {
	p := shell(t, "trap 'echo finished; exit 0' INT; echo ready; while :; do sleep 0.01; done")
	require.NoError(t, p.Start())
	logs(t, p, "ready")
	p.Stop()
	require.Equal(t, "ready\nfinished\n", p.Tail())
	require.Equal(t, p.Tail(), p.Log.(*testkit.Log).String())
}

func TestWaitTellsHowAProcessEnded(t *testing.T) {
	p := shell(t, "exit 0")
	require.NoError(t, p.Start())
	require.NoError(t, p.Wait(t.Context()))
	p = shell(t, "exit 3")
	require.NoError(t, p.Start())
	require.EqualError(t, p.Wait(t.Context()), "sh -c ended: exit status 3")
	require.NoError(t, p.Start(), "one that ended by itself is started again")
	p = shell(t, "exec sleep 60")
	require.NoError(t, p.Start())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Wait(ctx), context.Canceled)
	require.NoError(t, p.Signal(syscall.SIGTERM))
	require.ErrorContains(t, p.Wait(t.Context()), "signal: terminated")
}

func TestAwait(t *testing.T) {
	var status atomic.Int64
	status.Store(http.StatusServiceUnavailable)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	defer server.Close()
	p := shell(t, "echo no luck >&2; exit 1")
	require.NoError(t, p.Start())
	err := p.Await(t.Context(), server.URL)
	require.ErrorContains(t, err, "it has ended")
	require.ErrorContains(t, err, "no luck")
	p = shell(t, "sleep 60")
	require.NoError(t, p.Start())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, p.Await(ctx, server.URL), "503 Service Unavailable")
	status.Store(http.StatusOK)
	require.NoError(t, p.Await(t.Context(), server.URL))
}

func TestTheEnvironmentHasNoSettingOfThisProcess(t *testing.T) {
	t.Setenv("REGEDGE_TOKEN", "secret")
	p := shell(t, `echo "$REGEDGE_TOKEN-$OWN-$HOME"`)
	p.Env = []string{"OWN=own"}
	require.NoError(t, p.Start())
	require.NoError(t, p.Wait(t.Context()))
	require.Equal(t, "-own-"+os.Getenv("HOME")+"\n", p.Tail())
}

func TestEnterIsCalledOnTheThreadOfTheStart(t *testing.T) {
	p := shell(t, "echo done")
	p.Enter = func() error { return syscall.EPERM }
	require.ErrorIs(t, p.Start(), syscall.EPERM)
	called := false
	p.Enter = func() error { called = true; return nil }
	require.NoError(t, p.Start())
	require.NoError(t, p.Wait(t.Context()))
	require.True(t, called)
}

// childOf is set in the process that TestAChildDiesWithItsParent starts.
const childOf = "TESTKIT_CHILD"

// TestAChildDiesWithItsParent kills this test in another process, which has started a child.
func TestAChildDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel ends a child with its parent on Linux only")
	}
	if os.Getenv(childOf) != "" {
		p := shell(t, "echo child $$; exec sleep 60")
		p.Log = os.Stdout
		require.NoError(t, p.Start())
		_ = p.Wait(t.Context())
		return
	}
	parent := &testkit.Process{Program: os.Args[0], Args: []string{"-test.run", "^" + t.Name() + "$"}, Env: []string{childOf + "=1"}}
	parent.EndWith(t)
	require.NoError(t, parent.Start())
	logs(t, parent, "child ")
	logs(t, parent, "\n")
	_, number, _ := strings.Cut(parent.Tail(), "child ")
	child, err := strconv.Atoi(strings.Fields(number)[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(child, 0))
	parent.Kill()
	require.Eventually(t, func() bool { return gone(child) }, patience, time.Millisecond)
}

// gone reports whether a process has ended, even if nobody has waited for it yet.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}
