package service

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServicesStopInReverseOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var order []string
	named := func(name string) Service {
		return Service{name, func(ctx context.Context) error {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		}}
	}
	time.AfterFunc(time.Millisecond, cancel)
	require.NoError(t, Run(ctx, named("writer"), named("meter"), named("server")))
	require.Equal(t, []string{"server", "meter", "writer"}, order)
}

func TestTheFirstFailureStopsAllServices(t *testing.T) {
	waits := Service{"waits", func(ctx context.Context) error { <-ctx.Done(); return nil }}
	fails := Service{"fails", func(context.Context) error { return io.ErrUnexpectedEOF }}
	err := Run(t.Context(), waits, fails, waits)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "fails: ")
}

// TestAServiceThatReturnsEndsTheOthers, also without an error: they would go on without what they depend on.
func TestAServiceThatReturnsEndsTheOthers(t *testing.T) {
	waits := Service{"waits", func(ctx context.Context) error { <-ctx.Done(); return nil }}
	returns := Service{"returns", func(context.Context) error { return nil }}
	ended := make(chan error, 1)
	go func() { ended <- Run(t.Context(), returns, waits) }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the other service goes on")
	}
}

func TestClosersRunInReverseOrderAndAllOfThem(t *testing.T) {
	var closers Closers
	var order []int
	for i := range 3 {
		closers.Add(func() error {
			order = append(order, i)
			return map[bool]error{true: io.ErrClosedPipe}[i == 1]
		})
	}
	require.ErrorIs(t, closers.Close(), io.ErrClosedPipe)
	require.Equal(t, []int{2, 1, 0}, order)
}

func TestAListenerThatIsAlreadyClosedIsNoError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, IgnoreClosed(listener)())
	require.NoError(t, IgnoreClosed(listener)())
	require.ErrorIs(t, IgnoreClosed(failing{})(), errBroken)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	require.NoError(t, IgnoreClosed(file)())
	require.NoError(t, IgnoreClosed(file)())
}

var errBroken = errors.New("broken")

type failing struct{}

func (failing) Close() error { return errBroken }
