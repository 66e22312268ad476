package sqld

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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
			require.Equal(t, c.lost, (&Server{}).lost(&run{asked: replica.URL, ended: make(chan struct{})}), c.answers)
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
	go func() { lost <- (&Server{}).lost(&run{asked: replica.URL, ended: make(chan struct{})}) }()
	select {
	case got := <-lost:
		require.False(t, got)
	case <-time.After(30 * time.Second):
		replica.CloseClientConnections()
		require.Fail(t, "it is still asked")
	}
}
