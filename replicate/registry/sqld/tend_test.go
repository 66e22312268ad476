package sqld

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

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
