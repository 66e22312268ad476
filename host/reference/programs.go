package reference

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"regedge/handler/ident"
)

// programFiles are the programs of the guides. {base} and {key} stand for the address of the service and
// the sandbox key. Those in Go end in .go.txt: they are no package of this module.
//
//go:embed programs
var programFiles embed.FS

// programKinds are the languages of the programs, by the ends of their files' names.
var programKinds = []struct{ end, language, name string }{
	{".py", "Python", "python"}, {".mjs", "TypeScript", "javascript"}, {".go.txt", "Go", "go"},
}

// Programs returns a program of the guides in each language in which there is one.
func Programs(base, name string) ([]Sample, error) {
	var found []Sample
	fill := strings.NewReplacer("{base}", base, "{key}", ident.SandboxKey)
	for _, kind := range programKinds {
		text, err := fs.ReadFile(programFiles, "programs/"+name+kind.end)
		if err == nil {
			found = append(found, Sample{Language: kind.language, Name: kind.name, Code: withInstall(kind.name, fill.Replace(string(text)))})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no program %s", name)
	}
	return found, nil
}
