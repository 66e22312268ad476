package regedge_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// goTest is a command that runs some tests or benchmarks, up to the end of its line.
	goTest = regexp.MustCompile("(?:go test|GOTESTSUM\\) --) [^\n`]*")
	// selected is the part of such a command that says which: -run or -bench, and a pattern.
	selected = regexp.MustCompile(`-(run|bench) '?([^' ]+)'?`)
	// fuzzed is the part of a command of scripts/fuzz.sh that says which targets.
	fuzzed   = regexp.MustCompile(`fuzz\.sh \S+ '([^']+)'`)
	inFolder = regexp.MustCompile(`(?:^| )(\./[\w/]+)`)
	// given is a flag of a command; those of the go command are ofGo.
	given = regexp.MustCompile(` -([a-z][\w-]*)`)
	ofGo  = regexp.MustCompile(`^(run|bench|benchtime|benchmem|count|timeout|v|race|short|vet|exec|p|parallel|cpu|fuzz\w*|update|C|overlay|failfast|tags|json)$`)
)

// TestHereDocumentsOfDocumentsEnd: in an indented block, the line that should end one does not when it is pasted.
func TestHereDocumentsOfDocumentsEnd(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, file := range append(files, "README.md", "CONTRIBUTING.md") {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotRegexp(t, `(?m)^ +.*<<-?'?[A-Z]+'?$`, string(content), file)
	}
}

// TestNamedTestsExist: each test, benchmark and fuzz target that a script or a document names, since the go command
// succeeds when none has the name, and each flag that they give to a test: with a wrong one a soak would fail after hours.
func TestNamedTestsExist(t *testing.T) {
	files := []string{"Makefile", ".ci/run"}
	for _, pattern := range []string{"scripts/*.sh", "*.md", "docs/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	named := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, command := range fuzzed.FindAllStringSubmatch(string(content), -1) {
			for alternative := range strings.SplitSeq(command[1], "|") {
				named++
				require.True(t, anyIn(t, tests(t), "Fuzz", regexp.MustCompile(alternative)), "%s: %s", file, alternative)
			}
		}
		for _, command := range goTest.FindAllString(strings.ReplaceAll(string(content), "$$", "$"), -1) {
			folders := inFolder.FindAllStringSubmatch(command, -1)
			for _, flag := range given.FindAllStringSubmatch(command, -1) {
				if len(folders) > 0 && !ofGo.MatchString(flag[1]) {
					require.True(t, declaresFlag(t, append(tests(t, folders...), "internal/testkit/browser/checks.go"), flag[1]), "%s: %s: no test has -%s", file, command, flag[1])
				}
			}
			for _, choice := range selected.FindAllStringSubmatch(command, -1) {
				kind := map[string]string{"run": "Test", "bench": "Benchmark"}[choice[1]]
				for alternative := range strings.SplitSeq(choice[2], "|") {
					if alternative == "^$" || len(folders) == 0 {
						continue
					}
					name, err := regexp.Compile(strings.SplitN(alternative, "/", 2)[0])
					require.NoError(t, err, "%s: %s", file, command)
					named++
					require.True(t, anyIn(t, tests(t, folders...), kind, name), "%s: %s: nothing is called %s", file, command, alternative)
				}
			}
		}
	}
	require.Greater(t, named, 20)
}

// tests lists the files with tests in folders, by default in all.
func tests(t *testing.T, folders ...[]string) (files []string) {
	t.Helper()
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder[1], "*_test.go"))
		require.NoError(t, err)
		files = append(files, found...)
	}
	if len(folders) == 0 {
		for _, file := range sourceFiles(t) {
			if strings.HasSuffix(file, "_test.go") {
				files = append(files, file)
			}
		}
	}
	return files
}

// declaresFlag reports whether a file declares a flag.
func declaresFlag(t *testing.T, files []string, name string) bool {
	t.Helper()
	declared := regexp.MustCompile(`\bflag\.\w+\("` + name + `"`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if declared.Match(content) {
			return true
		}
	}
	return false
}

// anyIn reports whether a file declares a test, benchmark or fuzz target of such a name.
func anyIn(t *testing.T, files []string, kind string, name *regexp.Regexp) bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (` + kind + `\w*)\(`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range declared.FindAllSubmatch(content, -1) {
			if name.Match(found[1]) {
				return true
			}
		}
	}
	return false
}
