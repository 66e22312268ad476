package sqld

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAServerThatHangsIsKilled some time after it was asked to end: whoever stops it waits until then.
func TestAServerThatHangsIsKilled(t *testing.T) {
	command := exec.Command("sh", "-c", "trap '' INT; echo deaf; exec sleep 600")
	said, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	defer command.Process.Kill()
	_, err = bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	killed, tooLong := make(chan struct{}), time.After(30*time.Second)
	go func() { _ = command.Wait(); close(killed) }()
	synctest.Test(t, func(t *testing.T) {
		r := &run{command: command, output: newOutput(nil), ended: make(chan struct{})}
		go func() {
			defer close(r.ended)
			time.Sleep(2 * stopLimit)
			select {
			case <-killed:
			case <-tooLong:
				t.Error("it still runs")
			}
		}()
		r.end(os.Interrupt)
	})
}

// TestADatabaseIsWholeWithAllItsFiles, but for those that SQLite makes again.
func TestADatabaseIsWholeWithAllItsFiles(t *testing.T) {
	for files, want := range map[string]bool{
		"data client_wal_index data-wal data-shm": true, "data client_wal_index data-wal": true, "data client_wal_index": true,
		"data client_wal_index data-shm": false, "data data-wal data-shm": false, "client_wal_index data-wal data-shm": false,
	} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Dir(File(dir)), 0o700))
		for name := range strings.FieldsSeq(files) {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(File(dir)), name), nil, 0o600))
		}
		require.Equal(t, want, whole(dir), files)
	}
}

// TestADirectoryIsWaitedForWhileItsServerEnds: a killed regedge may hold its lock for a moment.
func TestADirectoryIsWaitedForWhileItsServerEnds(t *testing.T) {
	dir := t.TempDir()
	first, err := takeDir(dir, newOutput(nil))
	require.NoError(t, err)
	time.AfterFunc(10*lockPause, first.release)
	second, err := takeDir(dir, newOutput(nil))
	require.NoError(t, err)
	second.release()
}

// TestAServerThatWasStoppedIsNotStartedAgain, for a sign of damage that was seen just before.
func TestAServerThatWasStoppedIsNotStartedAgain(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	s := &Server{Config: Config{Program: program, Dir: t.TempDir()}}
	defer s.Kill()
	require.NoError(t, s.Start())
	before := s.current()
	s.Kill()
	s.copyAnew(before, "it has no header")
	require.Zero(t, s.PID())
	require.NoError(t, s.Start())
	started := s.PID()
	s.copyAnew(before, "it has no header")
	require.Equal(t, started, s.PID(), "nor is a later one, for what an earlier one had")
}

// sentinelLeft starts a program that leaves a late sentinel when it is stopped, and ends with a status.
func sentinelLeft(t *testing.T, status int) *Server {
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "program")
	path, started := sentinel(dir), filepath.Join(dir, "started")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, writeLog(primaryLog(dir), beginning{newLogID(), 1}))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, long, long))
	script := fmt.Sprintf("#!/bin/sh\ntrap 'rm %[1]q; : > %[1]q; exit %[3]d' INT\n: > %[2]q\nwhile :; do sleep 0.01; done\n", path, started, status)
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	s := &Server{Config: Config{Program: program, Dir: dir}}
	require.NoError(t, s.Start())
	t.Cleanup(s.Kill)
	require.Eventually(t, func() bool { return exists(started) }, time.Minute, time.Millisecond)
	return s
}

// TestALateSentinelIsRemovedBeforeAnotherMayRunThere: it would be the other's then.
func TestALateSentinelIsRemovedBeforeAnotherMayRunThere(t *testing.T) {
	s := sentinelLeft(t, 0)
	path, busy := sentinel(s.Dir), s.current()
	busy.taking.Lock() // what works with a seed takes its time
	done := sync.OnceFunc(busy.taking.Unlock)
	defer done()
	stopped := make(chan struct{})
	go func() { s.Stop(); close(stopped) }()
	<-busy.ended
	other, err := takeDir(s.Dir, newOutput(nil))
	require.NoError(t, err)
	defer other.release()
	require.NoFileExists(t, path)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	done()
	<-stopped
	require.FileExists(t, path, "that of the other")
}

// TestALateSentinelOfAServerThatFailedIsLeft: it did not close its database in order.
func TestALateSentinelOfAServerThatFailedIsLeft(t *testing.T) {
	s := sentinelLeft(t, 1)
	s.Stop()
	require.FileExists(t, sentinel(s.Dir))
}

// TestEachFileIsGivenForWhatItIs, to a primary and to a replica.
func TestEachFileIsGivenForWhatItIs(t *testing.T) {
	files := &TLSFiles{CA: "ca", Cert: "cert", Key: "key"}
	primary := Config{Dir: "dir", HTTP: "here:1", GRPC: "here:2", JWTKeyFile: "jwt", TLS: files}
	require.Equal(t, "--no-welcome -d dir --http-listen-addr here:1 --auth-jwt-key-file jwt --grpc-listen-addr here:2 "+
		"--grpc-tls --grpc-ca-cert-file ca --grpc-cert-file cert --grpc-key-file key", strings.Join(primary.arguments(), " "))
	replica := Config{Dir: "dir", HTTP: "here:1", Primary: "https://there:2", TLS: files}
	require.Equal(t, "--no-welcome -d dir --http-listen-addr here:1 --primary-grpc-url https://there:2 "+
		"--primary-grpc-tls --primary-grpc-ca-cert-file ca --primary-grpc-cert-file cert --primary-grpc-key-file key", strings.Join(replica.arguments(), " "))
	require.Equal(t, filepath.Dir(SeedFile("dir")), Files("dir")["handed over"])
}

// TestTheLogOfALargeDatabaseIsShort: its parts are kept, and many of them would take more than the registry. A replica has none.
func TestTheLogOfALargeDatabaseIsShort(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Dir(File(dir)), 0o700))
	require.NoError(t, os.WriteFile(File(dir), nil, 0o600))
	primary, replica := &Config{Dir: dir, GRPC: "127.0.0.1:1"}, &Config{Dir: dir, Primary: "http://127.0.0.1:1"}
	for size, short := range map[int64]bool{largeBytes - 1: false, largeBytes: true} {
		require.NoError(t, os.Truncate(File(dir), size)) // takes no room
		require.Equal(t, short, slices.Contains(primary.arguments(), "--max-log-size"), "%d bytes", size)
		require.NotContains(t, replica.arguments(), "--max-log-size")
	}
}
