package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/cluster"
)

// shiftable is added to the program: it reads by how many seconds the process's clock is off, from a file
// beside the edge's state or the writer's ledger.
const shiftable = `package main

import (
	"os"
	"slices"
	"strconv"
	"time"
)

func init() {
	at := slices.IndexFunc(os.Args, func(arg string) bool { return arg == "--state" || arg == "--database" })
	if at < 0 {
		return
	}
	read := func() {
		content, _ := os.ReadFile(os.Args[at+1] + ".clock")
		time.Shift, _ = strconv.ParseInt(string(content), 10, 64)
	}
	read()
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			read()
		}
	}()
}
`

// buildShiftable builds regedge with a clock that can be set. Only time.Now differs, in a copy of the standard
// library's file.
func buildShiftable(t *testing.T) (program string) {
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "time", "regedge/host").Output()
	require.NoError(t, err)
	dirs := strings.Fields(string(out)) // of time, then of the program: as they were named
	require.Len(t, dirs, 2)
	source, err := os.ReadFile(filepath.Join(dirs[0], "time.go"))
	require.NoError(t, err)
	const reads = "sec, nsec, mono := runtimeNow()\n"
	before, after, found := strings.Cut(string(source), "func Now() Time {\n\t"+reads)
	require.True(t, found, "this version of Go reads the clock in another way")
	changed := before + "var Shift int64\n\nfunc Now() Time {\n\t" + reads + "\tsec += Shift\n" + after
	overlay := map[string]string{}
	for at, content := range map[string]string{filepath.Join(dirs[0], "time.go"): changed, filepath.Join(dirs[1], "shiftable.go"): shiftable} {
		overlay[at] = filepath.Join(dir, filepath.Base(at))
		require.NoError(t, os.WriteFile(overlay[at], []byte(content), 0o600))
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600))
	program = filepath.Join(dir, "regedge")
	said, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "regedge/host").CombinedOutput()
	require.NoError(t, err, string(said))
	return program
}

// setClock sets by how much the clock of an edge, or of the writer, is off.
func (f *fixture) setClock(who string, by time.Duration) {
	file := filepath.Join(f.Dir, "edge-"+who+".clock")
	if who == "writer" {
		file = filepath.Join(f.Dir, "ledger.db.clock")
	}
	content := strconv.FormatInt(int64(by/time.Second), 10)
	require.NoError(f.t, os.WriteFile(file+".new", []byte(content), 0o600))
	require.NoError(f.t, os.Rename(file+".new", file))
}

// restart kills an edge, or the writer, and starts it again.
func (f *fixture) restart(who string) {
	process := f.WriterProcess
	if who != "writer" {
		process = f.edge(who).Process
	}
	process.Kill()
	require.NoError(f.t, process.Start())
}

// TestClocksJump sets the clocks of edges and of the writer wrong for seconds, under load, also over starts of
// theirs. What is answered meanwhile may be a 503. Once the clocks are right again each account is served
// at each edge, and what was answered with 200 was charged, once.
func TestClocksJump(t *testing.T) {
	if !soak() {
		t.Skip("it builds the standard library anew, and takes minutes: make soak")
	}
	const day = 24 * time.Hour
	f := startProgram(t, buildShiftable(t), "", []placed{{name: "east"}, {name: "west"}})
	f.push(f.before)
	l := f.newTraffic(fewAccounts)
	l.start()
	var faults []fault
	for _, by := range []time.Duration{
		3 * time.Second, -10 * time.Second, 330 * time.Minute, day, -day, 5 * day, 40 * day, -400 * day, 20 * 365 * day,
	} {
		for _, who := range [][]string{{"east"}, {"writer"}, {"east", "west", "writer"}} {
			for _, restarts := range []bool{false, true} {
				name := fmt.Sprintf("%s by %v, restarts %t", strings.Join(who, " "), by, restarts)
				faults = append(faults, fault{name, func(t *testing.T) time.Duration { return f.clocksOff(t, l, who, by, restarts) }})
			}
		}
	}
	l.disturbed(t, faults...)
}

// clocksOff returns how long it took, once the clocks were right again, until each account was served at each edge.
func (f *fixture) clocksOff(t *testing.T, l *traffic, who []string, by time.Duration, restarts bool) time.Duration {
	set := func(by time.Duration) {
		for _, w := range who {
			f.setClock(w, by)
			if restarts {
				f.restart(w)
			}
		}
	}
	for _, e := range f.Edges {
		l.down.Store(e.Name, true)
	}
	set(by)
	time.Sleep(3 * time.Second) // until all know it: the writer hears of edges each second
	set(0)
	right := time.Now()
	served := func(e *cluster.Edge) {
		require.Eventually(t, func() bool { return ready(e.URL) }, patience, 20*time.Millisecond)
		parallel(len(l.keys), func(n int) { l.insist(e, l.cins[0], l.keys[n]) })
	}
	for _, e := range f.Edges {
		served(e)
	}
	took := time.Since(right)
	time.Sleep(3 * time.Second) // the heartbeats and reports of the wrong time are followed by those of the right one
	for _, e := range f.Edges {
		served(e)
		l.down.Delete(e.Name)
	}
	return took
}

// TestAMonthEndsWithoutItsWriter: leases of not-found lookups are for a UTC day and those of volume for a month. Edges have
// those of the next one before it begins, so that a writer that hangs at midnight is not noticed.
func TestAMonthEndsWithoutItsWriter(t *testing.T) {
	if !soak() {
		t.Skip("it builds the standard library anew: make soak")
	}
	const accounts, known = 200, 30 * time.Second
	f := startProgram(t, buildShiftable(t), "", []placed{{name: "east"}, {name: "west"}})
	f.push(f.before)
	l := f.newTraffic(accounts)
	missing := func(e *cluster.Edge, n int) { // of a lookup that finds nothing
		a, err := fetch(http.DefaultClient, e.URL, fmt.Sprintf("/v1/companies/U72900ZZ2015PTC%06d", n), l.keys[n])
		if err != nil || a.status != http.StatusNotFound {
			l.fault("%s, key %d: %v %+v", e.Name, n, err, a)
		}
	}
	everywhere := func(do func(e *cluster.Edge, n int)) {
		for _, e := range f.Edges {
			parallel(len(l.keys), func(n int) { do(e, n) })
		}
	}
	now := time.Now().UTC()
	midnight := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	ends := now.Add(known).Truncate(time.Second)
	for _, who := range []string{"writer", "east", "west"} {
		f.setClock(who, midnight.Sub(ends))
	}
	everywhere(func(e *cluster.Edge, n int) { l.insist(e, l.cins[0], l.keys[n]) })
	require.Less(t, time.Now(), ends.Add(-5*time.Second), "the machine is too slow for %v", known)
	l.start()
	time.Sleep(time.Until(ends.Add(-2 * time.Second)))
	require.NoError(t, f.WriterProcess.Signal(syscall.SIGSTOP))
	time.Sleep(time.Until(ends.Add(time.Second))) // the clocks are in whole seconds
	everywhere(missing)
	everywhere(missing)
	time.Sleep(3 * time.Second)
	require.NoError(t, f.WriterProcess.Signal(syscall.SIGCONT))
	l.through(t, 1000)
	everywhere(missing)
	l.end(t)
}
