package reference

import (
	"encoding/json"
	"strings"

	"regedge/handler/ident"
)

// Sample is one call as a complete program in one language.
type Sample struct {
	// Language is for people, Name for tools: "Go" and "go".
	Language string `json:"language"`
	Name     string `json:"name"`
	Code     string `json:"code"`
}

// The placeholders of the templates below.
const (
	sampleURL = "{url}"
	sampleKey = "{key}"
)

// sampleTemplates are complete programs, ready to copy and run.
var sampleTemplates = []Sample{
	{"curl", "curl", `curl -H "Authorization: Bearer {key}" \
  "{url}"
`},
	{"Go", "go", `package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
)

func main() {
	request, err := http.NewRequest("GET", "{url}", nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer {key}")

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()

	var answer struct {
		Data         json.RawMessage
		Code, Detail string
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		log.Fatalf("%s: %s", answer.Code, answer.Detail)
	}
	fmt.Printf("%s\n", answer.Data)
}
`},
	{"Python", "python", `import json
import urllib.error
import urllib.request

request = urllib.request.Request(
    "{url}",
    headers={"Authorization": "Bearer {key}"},
)
try:
    with urllib.request.urlopen(request) as response:
        answer = json.load(response)
except urllib.error.HTTPError as error:
    problem = json.load(error)
    raise SystemExit(f"{problem['code']}: {problem['detail']}")

print(json.dumps(answer["data"], indent=2))
`},
	{"JavaScript", "javascript", `const response = await fetch("{url}", {
  headers: { Authorization: "Bearer {key}" },
});
const answer = await response.json();
if (!response.ok) {
  throw new Error(answer.code + ": " + answer.detail);
}
console.log(answer.data);
`},
}

// Samples writes a call of url with the sandbox key in each language.
func Samples(url string) []Sample {
	samples := make([]Sample, len(sampleTemplates))
	fill := strings.NewReplacer(sampleURL, url, sampleKey, ident.SandboxKey)
	for i, template := range sampleTemplates {
		samples[i] = template
		samples[i].Code = fill.Replace(template.Code)
	}
	return samples
}

// samplesJSON is what the pages' scripts fill samples from.
func samplesJSON() []byte {
	text, err := json.Marshal(sampleTemplates)
	if err != nil {
		panic(err) // text always has a JSON form
	}
	return text
}
