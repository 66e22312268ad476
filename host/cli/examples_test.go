package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestExamplesOfTheHelpAreCommands: a shell splits each into arguments, which parse as the command, or as another
// one of its group. The script examples.txtar runs those that it can.
func TestExamplesOfTheHelpAreCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"registry.pub", "registry-replica.pub", "ca.crt", "primary.crt", "primary.key", "edge-mumbai.crt", "edge-mumbai.key"} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	commands := map[string]bool{}
	_ = kong.Visit(commandTree(t), func(node kong.Visitable, next kong.Next) error {
		if command, ok := node.(*kong.Node); ok && command.Type == kong.CommandNode {
			commands[commandWords(command)] = true
		}
		return next(nil)
	})
	for words, text := range examples {
		t.Run(words, func(t *testing.T) {
			require.True(t, commands[words], words)
			require.LessOrEqual(t, strings.Count(text, "\nregedge "), 3)
			exported(t, text)
			lines := split(t, text)
			require.Len(t, lines, strings.Count(text, "\nregedge "))
			group, _, _ := strings.Cut(words, " ")
			for _, args := range lines {
				requireParsed(t, args)
				require.Equal(t, group, args[0])
			}
			for line := range strings.SplitSeq(text, "\n") {
				require.LessOrEqual(t, len(line), 76, "an indented line of a terminal: %s", line)
			}
		})
	}
}

// exported sets the variable of the primary for the commands of a text that exports it.
func exported(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "export REGEDGE_REGISTRY=") {
		t.Setenv("REGEDGE_REGISTRY", "http://127.0.0.1:1")
	}
}

// split returns the arguments of each call of the program in a text of commands, as a shell splits them.
func split(t *testing.T, text string) (lines [][]string) {
	t.Helper()
	out, err := exec.Command("sh", "-ec", "regedge() { printf '%s\\037' \"$@\"; echo; }\n"+text).CombinedOutput()
	require.NoError(t, err, "%s: %s", text, out)
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\037\n"), "\037"))
	}
	return lines
}

func requireParsed(t *testing.T, args []string) {
	t.Helper()
	m := &Main{Stdout: t.Output(), Stderr: t.Output(), Environ: func() []string { return nil }}
	_, err := m.parse(args)
	require.NoError(t, err, "%q", args)
}

// called matches a call of the program in a line of code, up to what else the shell does on the line.
var called = regexp.MustCompile(`(?m)^(?: {4,}.*?\$\(|[A-Z_]+=\$\(| {4,})(?:regedge|go run \./host) ([^|)&;>#\n]*)`)

// TestCommandsOfTheDocumentsParse: those that stand in lines of their own, for people to paste.
func TestCommandsOfTheDocumentsParse(t *testing.T) {
	found := 0
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				content, err := os.ReadFile(file)
				require.NoError(t, err)
				exported(t, string(content))
				for _, call := range called.FindAllStringSubmatch(strings.ReplaceAll(string(content), "\\\n", " "), -1) {
					for _, args := range split(t, "regedge "+call[1]) {
						found++
						requireParsed(t, args)
					}
				}
			})
		}
	}
	require.Greater(t, found, 30)
}

// runExamples runs the examples in the help of a command, but for those that ask.
func runExamples(ts *testscript.TestScript, neg bool, args []string) {
	text, ok := examples[strings.Join(args, " ")]
	if neg || !ok {
		ts.Fatalf("usage: examples COMMAND")
	}
	script := "set -e\n"
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.Contains(line, "asks first") {
			script += line + "\n"
		}
	}
	ts.Check(ts.Exec("sh", "-c", script))
}
