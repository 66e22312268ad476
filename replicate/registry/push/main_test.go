package push

import (
	"os"
	"testing"
)

// baseDir is where base makes its registry, below a folder that TestMain removes.
var baseDir string

func TestMain(m *testing.M) {
	var err error
	if baseDir, err = os.MkdirTemp("", "regedge-push-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(baseDir)
	os.Exit(code)
}
