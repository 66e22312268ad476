package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConnectionsLeaveFilesForTheNode(t *testing.T) {
	for name, c := range map[string]struct{ connections, files, processors, most int }{
		"enough":            {8192, 65536, 2, 8192},
		"just enough":       {8192, 8344, 2, 8192},
		"one too few":       {8192, 8343, 2, 8191},
		"for many":          {8192, 2000, 64, 2000 - 128 - 64*12},
		"few":               {8192, 200, 2, 100},
		"hardly any":        {8192, 1, 2, 1},
		"fewer connections": {10, 64, 2, 10},
		"not known":         {8192, 0, 2, 8192},
	} {
		require.Equal(t, c.most, affordable(c.connections, c.files, c.processors), name)
	}
}
