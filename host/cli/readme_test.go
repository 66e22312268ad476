package cli

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheReadmeHasEveryCommand, and none that is gone.
func TestTheReadmeHasEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	want := map[string]bool{}
	for _, command := range commandTree(t).Children {
		if !command.Hidden {
			want[command.Name] = true
		}
	}
	require.NotEmpty(t, want)
	got := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`regedge .*?) \\|").FindAllStringSubmatch(string(readme), -1) {
		for _, name := range regexp.MustCompile("`(?:regedge )?([a-z]+)").FindAllStringSubmatch(row[1], -1) {
			got[name[1]] = true
		}
	}
	require.Equal(t, want, got)
}
