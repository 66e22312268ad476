package cli

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestACommandSaysWhatItWaitsFor: at a service that takes connections and never answers.
func TestACommandSaysWhatItWaitsFor(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes the connections
	require.NoError(t, err)
	t.Cleanup(func() { silent.Close() })
	address := "http://" + silent.Addr().String()
	for line, want := range map[string]string{
		"status --token t":                                     "the writer at " + address + ", for 10s at most",
		"credit add 1 5 --token t":                             "the writer at " + address + ", for 10s at most",
		"doctor client --token t":                              "answers: the examination of the client goes on",
		"push waiting_test.go --dry-run --registry " + address: "the libSQL server at " + address + ", for 10s at most",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(line)
			if args[0] != "push" {
				args = append(args, "--writer", address)
			}
			p := start(args...)
			waits := "regedge: waiting for " + want + "\n"
			require.True(t, p.await(func() bool { return strings.Contains(p.stderr.String(), waits) }), p.stderr.String())
			p.stop()
			require.Equal(t, exitFailure, <-p.ended)
			require.Equal(t, 1, strings.Count(p.stderr.String(), "waiting for"), "once")
		})
	}
}
