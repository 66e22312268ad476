package reference_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
)

var update = flag.Bool("update", false, "record the sandbox's answers into sandbox.json")

// recorded is one answer of the recording. What differs from call to call is replaced.
type recorded struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    map[string]any    `json:"body"`
}

// fixedHeaders are the recorded headers, with a fixed value for those that differ each time.
var fixedHeaders = map[string]string{
	"Content-Type": "", "X-Request-Id": exampleID, "X-Registry-Release": "recorded",
	"RateLimit-Limit": "30", "RateLimit-Remaining": "29", "RateLimit-Reset": "42",
}

// TestTheRecordedSandboxIsWhatTheSandboxAnswers makes every call of the guide to the sandbox, and some
// that are refused.
func TestTheRecordedSandboxIsWhatTheSandboxAnswers(t *testing.T) {
	guide, err := os.ReadFile("guides/sandbox.html")
	require.NoError(t, err)
	targets := []string{"*", "/v1/companies/U72900ZZ2O15PTC000001", "/v1/llps/ZZZ-12", "/v1/directors/99999901X", "/v1/search/companies?limit=5",
		"/v1/search/companies?name=sandbox+every+field", "/v1/search/llps?llpin=ZZZ-0001", "/v1/search/llps?llpin=ZZZ-9999"}
	for _, match := range regexp.MustCompile(`<tr><td><code>(/v1/[^<]*)</code>`).FindAllStringSubmatch(string(guide), -1) {
		targets = append(targets, match[1])
	}
	require.Greater(t, len(targets), 18)
	base := service(t)
	answers := map[string]recorded{}
	for _, target := range targets {
		answers[target] = record(t, base, target)
	}
	got, err := json.MarshalIndent(map[string]any{"answers": answers}, "", " ")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("sandbox.json", append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile("sandbox.json")
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got), "record it anew: go test ./host/reference -run Recorded -update")
	require.Less(t, len(want), 30_000)
}

func record(t *testing.T, base, target string) recorded {
	t.Helper()
	path := target
	if target == "*" {
		path = "/v1/nothing"
	}
	request, err := http.NewRequest(http.MethodGet, base+path, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+ident.SandboxKey)
	request.Header.Set("X-Forwarded-For", "198.18.200.1")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	r := recorded{Status: response.StatusCode, Headers: map[string]string{}}
	for name, fixed := range fixedHeaders {
		if value := response.Header.Get(name); value != "" {
			r.Headers[name] = value
			if fixed != "" {
				r.Headers[name] = fixed
			}
		}
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&r.Body))
	if meta, ok := r.Body["meta"].(map[string]any); ok {
		meta["request_id"] = exampleID
	} else {
		r.Body["request_id"] = exampleID
		r.Body["type"] = strings.Replace(r.Body["type"].(string), base, "https://registry.example", 1)
	}
	return r
}
