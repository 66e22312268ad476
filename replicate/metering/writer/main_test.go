package writer

import (
	"os"
	"testing"
	"time"
)

// TestMain tests a writer on a machine whose time is not UTC.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("IST", 5*3600+1800)
	os.Exit(m.Run())
}
