package regedge_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainWords lists expressions that readers stumbled over, and what to write instead.
var plainWords = []struct{ pattern, instead string }{
	{`(?i)to whom it concerns`, "name the callback or the receiver"},
	{`(?i)\bwhom\b`, "name the person or the thing"},
	{`(?i)\bis that of (a|an|the|this|its|one|those)\b`, "is the ... of"},
	{`(?i)stands? by itself`, "not inlined: cold path"},
	{`(?i)what lives\b`, "live memory"},
	{`(?i)\bknows? of none\b`, "has none"},
	{`(?i)(is|are) told of\b`, "receives"},
	{`(?i)\bspeaks? of\b`, "describes, contains"},
	{`(?i)hardly ever needed`, "rarely needed"},
	{`(?i)(design|specification) section [0-9]`, `docs/contract.md or docs/design.md, by section title`},
	{`\bswar\b`, "fastbytes"},
	{`\b(furnish|giveUp|wentBack|knowsMore|runStack|beating|company_board|unboarded)\b`, "a name that says what it is"},
	{`\bregister (file|database)\b`, "registry"},
	{`(?i)\bhrana\b`, "libSQL, but for the protocol itself"},
	{`// .*\b[Cc]enter(s|ed)?\b`, "centre"},
}

// plainExceptions lists lines, by a part of them, that may contain such an expression.
var plainExceptions = []string{
	"`hrana server loop exited`", // what sqld logs
}

// sourceFiles lists the files with text of our own.
func sourceFiles(t *testing.T) (paths []string) {
	t.Helper()
	kinds := []string{".go", ".md", ".html", ".sql", ".yaml", ".yml", ".sh"}
	skipped := []string{".git", "build", "node_modules", "vendor"}
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skipped, entry.Name()):
			return filepath.SkipDir
		case entry.Type().IsRegular() && (slices.Contains(kinds, filepath.Ext(path)) || entry.Name() == "Makefile"):
			paths = append(paths, path)
		}
		return nil
	}))
	require.Greater(t, len(paths), 100)
	return paths
}

func TestWordsArePlain(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(plainWords))
	for i, w := range plainWords {
		patterns[i] = regexp.MustCompile(w.pattern)
	}
	for _, path := range sourceFiles(t) {
		if path == "words_test.go" {
			continue
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for n, line := range strings.Split(string(content), "\n") {
			if slices.ContainsFunc(plainExceptions, func(part string) bool { return strings.Contains(line, part) }) {
				continue
			}
			for i, pattern := range patterns {
				if found := pattern.FindString(line); found != "" {
					t.Errorf("%s:%d: %q: write instead: %s", path, n+1, found, plainWords[i].instead)
				}
			}
		}
	}
}

// TestPackageCommentsNameFilesThatExist: a list of files that names one which is gone misleads, and so does one that
// lacks a new one, but for those of a folder's shared files and of a state directory.
func TestPackageCommentsNameFilesThatExist(t *testing.T) {
	named, lists := regexp.MustCompile(`\b[a-z_]+\.go\b`), 0
	partial := map[string]bool{"host/cli": true, "replicate/metering/journal": true}
	for _, path := range sourceFiles(t) {
		if filepath.Ext(path) != ".go" {
			continue
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		comment, _, _ := strings.Cut(string(content), "\npackage ")
		if _, list, found := strings.Cut(comment, "// # Files\n"); found {
			lists++
			for _, file := range named.FindAllString(list, -1) {
				require.FileExists(t, filepath.Join(filepath.Dir(path), file), path)
			}
			sources, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.go"))
			require.NoError(t, err)
			for _, source := range sources {
				if file := filepath.Base(source); !strings.HasSuffix(file, "_test.go") && file != filepath.Base(path) && !partial[filepath.ToSlash(filepath.Dir(path))] {
					require.Regexp(t, `\b`+regexp.QuoteMeta(file), list, path)
				}
			}
		}
	}
	require.Greater(t, lists, 4)
}

// TestDocumentsNameFilesThatExist: what tells people where to look must lead there.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	named := regexp.MustCompile("`([a-z][A-Za-z0-9_-]*/[A-Za-z0-9_./-]+\\.[a-z]+)`")
	for _, document := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"} {
		content, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, match := range named.FindAllStringSubmatch(string(content), -1) {
			if path := match[1]; !strings.Contains(path, "0003_") && !strings.Contains(path, "NAME") {
				require.FileExists(t, path, document)
			}
		}
	}
}
