package reference

import (
	"encoding/json"
	"strings"

	"regedge/handler/ident"
	"regedge/web/apidoc"
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

// samplesJSON is the data from which the pages' scripts fill samples.
func samplesJSON() []byte {
	text, err := json.Marshal(sampleTemplates)
	if err != nil {
		panic(err) // text always has a JSON form
	}
	return text
}

// libraryCall is how the client libraries make the call of an operation, and what of its answer a sample
// prints. apidoc.Sample explains the words in «…».
type libraryCall struct{ goCall, goPrint, pythonCall, pythonPrint, javaScriptCall, javaScriptPrint string }

var libraryCalls = map[string]libraryCall{
	"searchCompanies": {
		`Search(context.Background(), "«name»", «limit|number»)`, "found.Data",
		`search("«name»"«if limit», limit=«limit|number»«end»)`, "found.data",
		`search("«name»"«if limit», { limit: «limit|number» }«end»)`, "found.data",
	},
	"searchLLPs": {
		`FindLLP(context.Background(), "«llpin»")`, "found.Data",
		`find_llp("«llpin»")`, "found.data",
		`findLlp("«llpin»")`, "found.data",
	},
	"getCompany": {
		`Company(context.Background(), "«cin»")`, "found.Data.Name, found.Data.Status",
		`company("«cin»")`, "found.data.company_name, found.data.status",
		`company("«cin»")`, "found.data.company_name, found.data.status",
	},
	"getDirector": {
		`Director(context.Background(), "«din»")`, "found.Data.Name, found.Data.LinkedCompaniesTotal",
		`director("«din»")`, "found.data.name, found.data.linked_companies_total",
		`director("«din»")`, "found.data.name, found.data.linked_companies_total",
	},
	"getLLP": {
		`LLP(context.Background(), "«llpin»")`, "found.Data.Name, found.Data.PartnersTotal",
		`llp("«llpin»")`, "found.data.llp_name, found.data.partners_total",
		`llp("«llpin»")`, "found.data.llp_name, found.data.partners_total",
	},
}

// librarySamples writes the call of an operation with each client library.
func librarySamples(operation string) []apidoc.Sample {
	call, ok := libraryCalls[operation]
	if !ok {
		return nil
	}
	fill := strings.NewReplacer("{goCall}", call.goCall, "{goPrint}", call.goPrint, "{pythonCall}", call.pythonCall, "{pythonPrint}", call.pythonPrint,
		"{javaScriptCall}", call.javaScriptCall, "{javaScriptPrint}", call.javaScriptPrint)
	samples := []apidoc.Sample{
		{Language: "Go", Name: "go", Code: `package main

import (
	"context"
	"fmt"
	"log"

	regedge "regedge/clients/go"
)

func main() {
	client, err := regedge.New(regedge.Config{
		BaseURL: "«base»",
		APIKey:  "«token»",
	})
	if err != nil {
		log.Fatal(err)
	}
	found, err := client.{goCall}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println({goPrint})
}
`},
		{Language: "Python", Name: "python", Code: `from regedge import Client

client = Client("«base»", "«token»")
found = client.{pythonCall}
print({pythonPrint})
`},
		{Language: "TypeScript", Name: "javascript", Code: `import { Client } from "regedge";

const client = new Client({
  baseUrl: "«base»",
  apiKey: "«token»",
});
const found = await client.{javaScriptCall};
console.log({javaScriptPrint});
`},
	}
	for i := range samples {
		samples[i].Code = withInstall(samples[i].Name, fill.Replace(samples[i].Code))
	}
	return samples
}

// libraries are the client libraries: how programs import each, and the command that installs it beside a
// copy of this project's clients, as a comment of its language.
var libraries = map[string]struct{ imports, install string }{
	"go":         {`"regedge/clients/go"`, "// go mod edit -replace regedge/clients/go=./clients/go && go get regedge/clients/go\n// ./clients is a folder of the source of this service.\n"},
	"python":     {"from regedge import", "# pip install ./clients/python\n# ./clients is a folder of the source of this service.\n"},
	"javascript": {`from "regedge"`, "// npm install --prefix ./clients/typescript && npm install ./clients/typescript\n// ./clients is a folder of the source of this service.\n"},
}

// withInstall puts before a program the command that installs the client library, if it uses one.
func withInstall(language, code string) string {
	if library, ok := libraries[language]; ok && strings.Contains(code, library.imports) {
		return library.install + code
	}
	return code
}
