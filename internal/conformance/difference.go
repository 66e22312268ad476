package conformance

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// compareVectors fails t with the lines of the vector's file that differ, for every exchange.
func compareVectors(t *testing.T, path string, want, got *Vector) {
	t.Helper()
	for i, e := range want.Exchanges {
		answer := got.Exchanges[i]
		different := difference(e.answerLines(), answer.answerLines())
		if different == "" {
			continue
		}
		advice := "accept with -update"
		if answer.Status != e.Status {
			advice = "-update keeps statuses: if the new one is right, edit it by hand"
		}
		t.Errorf("%s:%d: %s (- want, + got)\n%s%s", path, e.line, e.Request[0], different, advice)
	}
}

// answerLines returns the answer as lines of a vector file.
func (e *Exchange) answerLines() []string {
	var b bytes.Buffer
	e.formatAnswer(&b)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// difference returns the lines by which got differs from want, in order, and "" when they are
// equal. It keeps a longest common subsequence.
func difference(want, got []string) string {
	// common[i][j] is the length of the longest common subsequence of want[i:] and got[j:].
	common := make([][]int, len(want)+1)
	for i := range common {
		common[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			if want[i] == got[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var b strings.Builder
	for i, j := 0, 0; i < len(want) || j < len(got); {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && common[i+1][j] >= common[i][j+1]:
			fmt.Fprintf(&b, "-%s\n", want[i])
			i++
		default:
			fmt.Fprintf(&b, "+%s\n", got[j])
			j++
		}
	}
	return b.String()
}
