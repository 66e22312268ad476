package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

func TestOperatorsReadAboutTheAPI(t *testing.T) {
	w := newWorld(t)
	b := w.operator()
	body := b.get("/api").text()
	for _, said := range []string{
		`<code>POST /v1/keys/{id}/rotate</code> <span class="badge">accounts</span>`, `href="/v1/openapi.yaml"`,
		`<li><code>cursor</code>: The next of the page before.</li>`, "<summary>Answer: a page of Account</summary>",
		`<th scope="row"><code>overlap_seconds</code></th><td class="nowrap">integer, optional</td>`,
		`<th scope="row"><code>expires</code></th><td class="nowrap">time or null</td>`, "<code>beyond_balance</code>",
	} {
		require.Contains(t, body, said)
	}
	p := w.browser().get(writer.DocumentPath)
	require.Equal(t, http.StatusOK, p.StatusCode)
	require.Equal(t, "application/yaml", p.Header.Get("Content-Type"))
	require.Equal(t, string(writer.Document()), p.body)
	owner, _ := w.owner("Acme", 0)
	require.Equal(t, http.StatusNotFound, owner.get("/api").StatusCode)
}
