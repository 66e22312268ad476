package sqld

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestADatabaseIsLostOnceTheReplicaHasSaidSoThriceInARow: one that does not answer in between, as a busy one
// does not, says nothing about its database, which would be removed.
func TestADatabaseIsLostOnceTheReplicaHasSaidSoThriceInARow(t *testing.T) {
	const none = 0
	answers := make(chan int, 6)
	replica := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := <-answers
		if status == none {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
	}))
	defer replica.Close()
	replica.Config.SetKeepAlivesEnabled(false) // no connection outlives its answer, and holds the clock up
	for _, c := range []struct {
		answers []int
		lost    bool
	}{
		{[]int{404, 404, 404}, true}, {[]int{401}, false}, {[]int{404, 404, 401}, false},
		{[]int{404, 404, none, 404, 404, 401}, false}, {[]int{none, none, none, 404, 404, 404}, true},
	} {
		for _, status := range c.answers {
			answers <- status
		}
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, c.lost, (&Server{}).lost(&run{asked: replica.URL, ended: make(chan struct{})}, nil), c.answers)
		})
		require.Empty(t, answers, "every answer was asked for")
	}
}

// TestAReplicaThatHangsIsNotAskedForEver: meanwhile nothing else about it would be noticed.
func TestAReplicaThatHangsIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	hang := make(chan bool, 1)
	hang <- true
	replica := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
			_, _ = io.Copy(io.Discard, r.Body) // until then an end is not noticed
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer replica.Close()
	lost := make(chan bool, 1)
	go func() { lost <- (&Server{}).lost(&run{asked: replica.URL, ended: make(chan struct{})}, nil) }()
	select {
	case got := <-lost:
		require.False(t, got)
	case <-time.After(30 * time.Second):
		replica.CloseClientConnections()
		require.Fail(t, "it is still asked")
	}
}

// TestAReplicaThatHangsForGoodIsStartedAgain: also one that hangs just after it logged that it lost its database. It was asked for
// an answer about that for ever, and nothing else about it was noticed.
func TestAReplicaThatHangsForGoodIsStartedAgain(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho NamespaceDoesntExist\nexec sleep 600\n"), 0o700))
	s := &Server{hung: silence{checks: 20, limit: 100 * time.Millisecond, pause: time.Millisecond}}
	s.Config = Config{Program: program, Dir: t.TempDir(), HTTP: silent.Addr().String(), Primary: "http://127.0.0.1:1"}
	require.NoError(t, s.Start())
	t.Cleanup(s.Kill)
	first := s.PID()
	require.Eventually(t, func() bool { return s.PID() != first }, time.Minute, 10*time.Millisecond)
}

// tended starts a replica whose server does nothing, and returns it with its log.
func tended(t *testing.T, s *Server) (*Server, *testkit.Log) {
	log, program := &testkit.Log{}, filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	s.Config = Config{Program: program, Dir: t.TempDir(), HTTP: "127.0.0.1:1", Primary: "http://127.0.0.1:1", Relay: true, Log: log}
	require.NoError(t, s.Start())
	t.Cleanup(s.Kill)
	return s, log
}

// TestACopyOfAReplicaThatWasAheadCounts: a primary that is set back again and again would send its database each time.
func TestACopyOfAReplicaThatWasAheadCounts(t *testing.T) {
	s, _ := tended(t, &Server{})
	first := s.PID()
	s.current().relay.ahead <- struct{}{}
	require.Eventually(t, func() bool { return s.PID() != first }, time.Minute, time.Millisecond)
	require.Equal(t, 1, s.copies)
}

// TestAFileThatWasCopiedMeanwhileIsLeftAlone: the damage was in the one before.
func TestAFileThatWasCopiedMeanwhileIsLeftAlone(t *testing.T) {
	const wait = 5 * time.Second // for the file to be exchanged
	s, log := tended(t, &Server{copies: 1, copied: time.Now().Add(wait - copyPause)})
	first := s.PID()
	write := func(path string) { require.NoError(t, os.WriteFile(path, []byte(headerText), 0o600)) }
	require.NoError(t, os.MkdirAll(filepath.Dir(File(s.Dir)), 0o700))
	write(File(s.Dir))
	s.current().damaged <- struct{}{}
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "is damaged again: it is copied anew in") }, time.Minute, time.Millisecond)
	write(File(s.Dir) + ".new")
	require.NoError(t, os.Rename(File(s.Dir)+".new", File(s.Dir)))
	time.Sleep(wait + time.Second)
	require.Equal(t, first, s.PID())
}
