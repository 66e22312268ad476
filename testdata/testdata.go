// Package testdata embeds the files of the sample registry, which tests share and `regedge
// dev` serves. README.md says what is real, where it comes from, and under which licence.
// Package schema/sample imports them.
package testdata

import (
	"embed"
	"io/fs"
)

//go:embed registry
var files embed.FS

// Registry is the file system of the sample's files.
func Registry() fs.FS {
	sub, err := fs.Sub(files, "registry")
	if err != nil {
		panic(err) // the directory is embedded above: its name is valid
	}
	return sub
}
