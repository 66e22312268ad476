package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/host/engine"
	"regedge/internal/testkit/sampletest"
)

// readable reports whether a server hands such text on: RFC 9112 allows neither spaces nor control
// characters in a request target, nor the latter in the value of a field.
func readable(text string, spaces bool) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c == 0x7f || c == ' ' && !spaces {
			return false
		}
	}
	return true
}

// FuzzEnginesAnswerAlike sends any request target and header fields to the native engine and to the
// component: the answers are the same bytes, and the meter is asked the same.
func FuzzEnginesAnswerAlike(f *testing.F) {
	native, component := newFixture(f), newFixture(f)
	made, err := engine.NewComponent(f.Context(), component.parts(), engine.Limits{Instances: 2})
	require.NoError(f, err)
	f.Cleanup(func() { made.Close(context.Background()) })
	plain := engine.NewNative(native.parts())
	live := "Bearer " + native.key
	for _, target := range []string{
		"/v1/companies/" + sampletest.CompanyEveryField, "/v1/companies/" + strings.ToLower(sampletest.CompanyNotHeld), "/v1/companies/x",
		"/v1/companies/%55" + sampletest.CompanyEveryField[1:], "/v1/companies/%ZZ", "/v1/companies/%", "/v1/companies/%2", "/v1/companies/\xd1%", "/v1/companies/a%2Fb", "/v1/companies/",
		"/v1/directors/" + sampletest.DirectorManyLinks, "/v1/directors/1", "/v1/directors/000000001", "/v1/llps/aab1234", "/v1/llps/" + sampletest.LLPManyPartners,
		"/v1/search/companies?name=made&limit=10", "/v1/search/companies?name=%F0%9F%98%80%00&limit=", "/v1/search/companies?name=%2&name=a", "/v1/search/companies?name=a+b;limit=1&&=",
		"/v1/search/companies?name=\xff\xc3\xa9", "/v1/search/companies?name=" + strings.Repeat("ee", 100), "/v1/search/llps?llpin=AAB-1234&llpin=", "/v1/search/llps?", "/v2", "*", "", "/", "//v1/llps/a", "/v1/../v1/llps/a?#",
	} {
		f.Add("GET", target, live, "X", "y")
	}
	for _, authorization := range []string{"Bearer " + ident.SandboxKey, "bearer  " + native.key + " ", "Basic eA==", "", "Bearer", "Bearer \xff", "Bearer " + native.key[:20]} {
		f.Add("GET", "/v1/search/companies?name=a", authorization, "AUTHORIZATION", "Bearer x")
	}
	f.Add("OPTIONS", "/v1/llps/a", "", "Access-Control-Request-Method", "GET")
	f.Add("HEAD", "/v1/llps/a", live, "spin-client-addr", "6.6.6.6")
	f.Fuzz(func(t *testing.T, method, target, authorization, name, value string) {
		if !readable(method, false) || !readable(target, false) || !readable(authorization, true) || !readable(name, false) || !readable(value, true) {
			return
		}
		q := func() *handler.Request {
			return &handler.Request{
				Method: method, Target: target, Authority: "h", ClientAddr: func() string { return "192.0.2.1" },
				Headers: []handler.Header{{Name: "authorization", Value: authorization}, {Name: name, Value: value}},
			}
		}
		native.meter.charged, component.meter.charged = nil, nil
		var want, got handler.Response
		require.NoError(t, plain.Answer(t.Context(), q(), &want))
		require.NoError(t, made.Answer(t.Context(), q(), &got))
		blank(&want)
		blank(&got)
		require.Equal(t, want.Status, got.Status)
		require.ElementsMatch(t, want.Headers, got.Headers)
		require.Equal(t, string(want.Body), string(got.Body))
		require.Len(t, component.meter.charged, len(native.meter.charged))
		for i, charged := range component.meter.charged {
			want := native.meter.charged[i]
			want.ID, charged.ID = "", ""
			require.Equal(t, want, charged)
		}
	})
}
