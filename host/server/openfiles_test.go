package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConnectionsLeaveFilesForTheNode(t *testing.T) {
	for name, c := range map[string]struct{ connections, files, most int }{
		"enough":               {8192, 65536, 8192},
		"just enough":          {8192, 8448, 8192},
		"one too few":          {8192, 8447, 8191},
		"few":                  {8192, 400, 200},
		"hardly any":           {8192, 1, 1},
		"fewer connections":    {10, 64, 10},
		"not known":            {8192, 0, 8192},
		"where both are alike": {8192, 512, 256},
	} {
		require.Equal(t, c.most, affordable(c.connections, c.files), name)
	}
}
