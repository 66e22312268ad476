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
		`<code>/v1/keys/{id}/rotate</code> <span class="badge">accounts</span>`, `href="/v1/openapi.yaml"`,
		`<li id="rotateKey.body.overlap_seconds">`, `<li id="readKey.answer.expires">`, `<li id="changeCredits.beyond_balance">`,
		`Authorization: Bearer reg_operator_…`, `/v1/accounts"`, `src="/assets/reference.js"`,
	} {
		require.Contains(t, body, said)
	}
	require.NotContains(t, body, "base.invalid")
	require.NotContains(t, body, "/settings/tokens", "operators have tokens of their own")
	require.NotContains(t, body, `class="try"`)
	gzipped := func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }
	transferred := len(b.do(http.MethodGet, "/api", nil, gzipped).body)
	require.Equal(t, []string{"Cookie", "Accept-Encoding"}, b.seen.Header.Values("Vary"))
	for _, file := range []string{"style.css", "icon.svg", "dashboard.js", "reference.css", "reference.js", "samples.js"} {
		p := b.do(http.MethodGet, "/assets/"+file, nil, gzipped)
		require.Equal(t, http.StatusOK, p.StatusCode)
		transferred += len(p.body)
	}
	require.Less(t, transferred, 60_000, "the page with all that it loads")
	p := w.browser().get(writer.DocumentPath)
	require.Equal(t, http.StatusOK, p.StatusCode)
	require.Equal(t, "application/yaml", p.Header.Get("Content-Type"))
	require.Equal(t, string(writer.Document()), p.body)
	owner, _ := w.owner("Acme", 0)
	require.Equal(t, http.StatusNotFound, owner.get("/api").StatusCode)
}
