package writer_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
)

func TestANewNodeTokenEndsTheOldOne(t *testing.T) {
	client, _, w := start(t, t.TempDir())
	first, err := client.AddNode(t.Context(), "edge-1")
	require.NoError(t, err)
	hello := func(token string) int {
		m := syncproto.Message{Number: 1, Hello: &syncproto.Hello{Boot: 1}}
		r, err := http.NewRequest(http.MethodPost, "http://writer"+writer.SyncPath, bytes.NewReader(m.Encode()))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := writer.InProcess(w.Handler()).RoundTrip(r)
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, hello(first.Token))
	second, err := client.NewNodeToken(t.Context(), "edge-1")
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, hello(first.Token), "the old token, which was used before")
	require.Equal(t, http.StatusOK, hello(second.Token))
}
