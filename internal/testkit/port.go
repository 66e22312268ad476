package testkit

import (
	"testing"

	"regedge/replicate/registry/freeport"
)

// FreePort reserves a port of 127.0.0.1 until the end of a test, and returns it as "host:port".
func FreePort(t testing.TB) (address string) {
	t.Helper()
	address, release, err := freeport.Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return address
}
