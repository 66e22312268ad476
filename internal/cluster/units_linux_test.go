package cluster_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/cluster"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/writer"
	"regedge/schema/sample"
)

const unitsDir = "../../deploy/systemd"

// maxExposure is the worst that systemd-analyze security may say of a unit, of 10.
const maxExposure = 2.0

// unitFiles lists the units. The test is skipped without systemd-analyze, which make tools installs.
func unitFiles(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		testkit.MissingTool(t, err, ": make tools installs it (Debian's package systemd)")
	}
	files, err := filepath.Glob(filepath.Join(unitsDir, "*.service"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// confined are lines that every unit has. The exposure that systemd-analyze computes from
// them would allow to miss a few.
var confined = []string{
	`Type=(notify|exec|oneshot)`, `MemoryMax=\d+[MG]`, `CapabilityBoundingSet=`, `AmbientCapabilities=`,
	`NoNewPrivileges=yes`, `LockPersonality=yes`, `PrivateDevices=yes`, `PrivateTmp=yes`, `PrivateUsers=yes`,
	`ProtectClock=yes`, `ProtectControlGroups=yes`, `ProtectHome=yes`, `ProtectHostname=yes`, `ProtectKernelLogs=yes`,
	`ProtectKernelModules=yes`, `ProtectKernelTunables=yes`, `ProtectProc=invisible`, `ProtectSystem=strict`,
	`RemoveIPC=yes`, `RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6`, `RestrictNamespaces=yes`,
	`RestrictRealtime=yes`, `RestrictSUIDSGID=yes`, `SystemCallArchitectures=native`,
	`SystemCallFilter=@system-service`, `SystemCallFilter=~@privileged @resources`,
}

func TestUnitsAreConfined(t *testing.T) {
	users := map[string][]string{}
	for _, file := range unitFiles(t) {
		name := filepath.Base(file)
		said, err := exec.Command("systemd-analyze", "security", "--offline=true", file).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, said)
		found := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(said)
		require.NotNil(t, found, string(said))
		exposure, err := strconv.ParseFloat(string(found[1]), 64)
		require.NoError(t, err)
		t.Log(name, exposure)
		require.LessOrEqual(t, exposure, maxExposure, "%s: %s", name, said)
		unit, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range confined {
			require.Regexp(t, `(?m)^`+line+`$`, string(unit), name)
		}
		user := regexp.MustCompile(`(?m)^User=(.*)$`).FindStringSubmatch(string(unit))
		require.NotNil(t, user, name)
		users[user[1]] = append(users[user[1]], name)
	}
	// Those that share a user write to the same files.
	require.Equal(t, map[string][]string{
		"regedge-%i":     {"regedge-primary@.service"},
		"regedge-meter":  {"regedge-meter.service"},
		"regedge-writer": {"regedge-litestream.service", "regedge-writer.service"},
		"root":           {"regedge-renew.service"}, // it reads the signing keys, and ends
		"regedge-edge":   {"regedge-edge.service", "regedge-replica@.service"},
	}, users)
}

// TestServicesRunConfined runs a cluster whose processes are refused the system calls that the units
// refuse, and memory that is writable and executable where the units refuse it.
func TestServicesRunConfined(t *testing.T) {
	unitFiles(t)
	regedge, err := program()
	require.NoError(t, err)
	dir := t.TempDir()
	f := &fixture{t: t, log: new(testkit.Log)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f.Cluster, err = cluster.Start(ctx, cluster.Config{
		Dir: filepath.Join(dir, "cluster"), Regedge: wrap(t, dir, "regedge", regedge, "$1"),
		Sqld: wrap(t, dir, "sqld", sqldtest.Program(t), "primary@"),
		Log:  func(string) io.Writer { return f.log },
	})
	require.NoError(t, err, f.log.String())
	t.Cleanup(f.Stop)
	edge, err := f.AddEdge(ctx, "east")
	require.NoError(t, err, f.log.String())

	f.Regedge = regedge // a push is no service
	registry := filepath.Join(dir, "registry.db")
	_, err = sample.Import(ctx, registry, nil)
	require.NoError(t, err)
	f.push(registry)
	account, err := f.Client.AddAccount(ctx, "made-up", "", "scale")
	require.NoError(t, err)
	_, err = f.Client.ChangeCredits(ctx, account.ID, writer.CreditChange{Amount: 10})
	require.NoError(t, err)
	key, err := f.Client.AddKey(ctx, account.ID, "")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		a, err := fetch(http.DefaultClient, edge.URL, "/v1/companies/"+sampletest.CompanyEveryField, key.Secret)
		return err == nil && a.status == http.StatusOK
	}, patience, 20*time.Millisecond, f.log.String())
	require.NotContains(t, f.log.String(), "operation not permitted")
}

// wrap makes a program that runs another one confined as a unit says.
func wrap(t *testing.T, dir, name, program, unit string) string {
	t.Helper()
	own, err := os.Executable()
	require.NoError(t, err)
	units, err := filepath.Abs(unitsDir)
	require.NoError(t, err)
	xsys, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	require.NoError(t, err)
	path := filepath.Join(dir, name)
	script := fmt.Sprintf("#!/bin/sh\nXSYS='%s' %s='%s' %s=\"%s/regedge-%s.service\" exec '%s' \"$@\"\n",
		strings.TrimSpace(string(xsys)), confinedProgram, program, confinedUnit, units, unit, own)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}
