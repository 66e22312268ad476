package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints the version of the program, the commit it was built from when Go knows it,
// and the Go that built it.
func (c *versionCommand) Run(m *Main) error {
	commit := ""
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				commit = " (" + setting.Value + ")"
			}
		}
	}
	_, err := fmt.Fprintf(m.Stdout, "regedge %s%s, %s\n", programVersion(), commit, runtime.Version())
	return err
}

// programVersion is the version of the program, devel when Go knows none.
func programVersion() string {
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	return "devel"
}
