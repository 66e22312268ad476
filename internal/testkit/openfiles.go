package testkit

import (
	"os"
	"strings"
	"testing"
)

// OpenFiles lists the files of this process whose paths begin with path: an SQLite database, its log and
// its index. It skips the test on a system that does not list them.
func OpenFiles(t testing.TB, path string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("skipped: this system does not list the open files of a process")
	}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(name, path) {
			list = append(list, name)
		}
	}
	return list
}
