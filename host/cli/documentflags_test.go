package cli

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/heartbeat"
	"regedge/replicate/metering/meter"
)

// foreign are flags and variables in documents that are of other programs, or of this project's scripts and tests.
var foreign = strings.Fields(`--quiet --format --cacert --ignore-scripts --insecure --prefix --shell --system --no-create-home --now --rm --max-depth --inodes --from-file --from-literal --release --help --config --version
	REGEDGE_TOOLS REGEDGE_SQLD REGEDGE_BASE REGEDGE_FILE REGEDGE_NAME REGEDGE_DRY_RUN`)

// documentsForPeople returns the documents and guides for people, by their paths.
func documentsForPeople(t *testing.T) map[string]string {
	t.Helper()
	return testkit.Texts(t, "../../*.md", "../../docs/*.md", "../../deploy/*/*", "../reference/guides/*.html")
}

// flagsOfCommands returns, by each flag's name, that flag in all commands that have it.
func flagsOfCommands(t *testing.T) map[string][]*kong.Flag {
	t.Helper()
	flags := map[string][]*kong.Flag{}
	for _, leaf := range commandTree(t).Leaves(false) {
		for _, group := range leaf.AllFlags(false) {
			for _, flag := range group {
				flags["--"+flag.Name] = append(flags["--"+flag.Name], flag)
			}
		}
	}
	return flags
}

// TestFlagsOfTheDocumentsExist, and variables: one that nobody reads would be set in vain.
func TestFlagsOfTheDocumentsExist(t *testing.T) {
	known, variables := map[string]bool{}, map[string]bool{}
	for name, flags := range flagsOfCommands(t) {
		known[name] = true
		for _, flag := range flags {
			for _, variable := range flag.Envs {
				variables[variable] = true
			}
		}
	}
	for _, name := range foreign {
		known[name], variables[name] = true, true
	}
	found := 0
	for file, text := range documentsForPeople(t) {
		if strings.HasSuffix(file, ".md") && !strings.HasSuffix(file, "CHANGELOG.md") {
			for _, flag := range regexp.MustCompile("(?m)(?:^|[ `(])(--[a-z][a-z-]*[a-z])").FindAllStringSubmatch(text, -1) {
				found++
				require.True(t, known[flag[1]], "%s: %s", file, flag[1])
			}
		}
		for _, variable := range regexp.MustCompile(`\bREGEDGE_[A-Z_]*[A-Z]\b`).FindAllString(text, -1) {
			found++
			require.True(t, variables[variable], "%s: %s", file, variable)
		}
	}
	require.Greater(t, found, 200)
}

// TestDefaultsInTheDocumentsAreThoseOfTheFlags: where a document has one in parentheses behind the flag.
func TestDefaultsInTheDocumentsAreThoseOfTheFlags(t *testing.T) {
	flags, found := flagsOfCommands(t), 0
	for file, text := range documentsForPeople(t) {
		for _, said := range regexp.MustCompile("`(--[a-z-]+)`\\s+\\(([0-9][0-9,.]*)(?:\\s+(ms|s|seconds?|minutes?|hours?))?[,)]").FindAllStringSubmatch(text, -1) {
			found++
			require.NotEmpty(t, flags[said[1]], "%s: %s", file, said[1])
			number, err := strconv.ParseFloat(strings.ReplaceAll(said[2], ",", ""), 64)
			require.NoError(t, err)
			unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "second": time.Second, "minute": time.Minute, "hour": time.Hour}[strings.TrimSuffix(said[3], "s")]
			if said[3] == "s" || said[3] == "ms" {
				unit = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second}[said[3]]
			}
			for _, flag := range flags[said[1]] {
				if said[3] == "" {
					have, err := strconv.ParseFloat(flag.Default, 64)
					require.NoError(t, err, said[1])
					require.Equal(t, number, have, "%s: %s", file, said[1])
					continue
				}
				have, err := time.ParseDuration(flag.Default)
				require.NoError(t, err, said[1])
				require.Equal(t, time.Duration(number*float64(unit)), have, "%s: %s", file, said[1])
			}
		}
	}
	require.GreaterOrEqual(t, found, 8)
}

// TestDefaultsAreThoseThatOthersCountOn: the writer, which does not know the flags of its edges, and commands beside them.
func TestDefaultsAreThoseThatOthersCountOn(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"--access-max-age": heartbeat.ClockPatience, "--max-lag": replicaOld, "--journal-sync": meter.DefaultJournalSync,
	} {
		flags := flagsOfCommands(t)[name]
		require.NotEmpty(t, flags, name)
		for _, flag := range flags {
			have, err := time.ParseDuration(flag.Default)
			require.NoError(t, err, name)
			require.Equal(t, want, have, name)
		}
	}
}
