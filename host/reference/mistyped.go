package reference

import (
	"path"
	"strings"

	"regedge/handler"
)

// otherNames are what people type instead of the name of a page or folder.
var otherNames = map[string]string{
	"api": "reference", "code": "problems", "codes": "problems", "doc": "guides", "docs": "guides", "error": "problems",
	"guide": "guides", "index.html": "", "openapi": "openapi.json", "problem": "problems",
}

// allPaths are the paths of all pages and documents, except for the assets.
func (s *Site) allPaths() map[string]bool {
	paths := map[string]bool{"/": true, "/reference": true, "/guides": true, "/problems": true}
	for _, g := range guides {
		paths["/guides/"+g.Name] = true
	}
	for _, p := range handler.Problems() {
		paths["/problems/"+p.Code] = true
	}
	for document := range s.documents {
		paths[document] = true
	}
	return paths
}

// meant returns the path of the page that a mistyped path stands for, or "". The typed path may have a slash too
// many or capitals, another name for a folder, or lack the folder.
func (s *Site) meant(typed string) string {
	typed = path.Clean("/" + strings.ToLower(typed))
	folder, rest, _ := strings.Cut(typed[1:], "/")
	if name, ok := otherNames[folder]; ok {
		typed = path.Join("/", name, rest)
	}
	for _, candidate := range []string{typed, "/guides" + typed, "/problems" + typed} {
		if s.paths[candidate] {
			return candidate
		}
	}
	return ""
}
