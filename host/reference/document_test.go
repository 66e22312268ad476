package reference_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/internal/testkit"
)

func TestTheDocumentNamesEveryCodeAndNoOther(t *testing.T) {
	doc := loadDocument(t)
	var known []string
	for _, problem := range handler.Problems() {
		known = append(known, problem.Code)
	}
	require.ElementsMatch(t, known, documentedCodes(doc))
	var enumerated []string
	for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		enumerated = append(enumerated, code.(string))
	}
	require.ElementsMatch(t, known, enumerated)
}

func TestExamplesOfProblemsAreThoseOfTheService(t *testing.T) {
	more := map[string]string{handler.InvalidCIN: " Character 10 of this one is not a digit."}
	eachProblemExample(loadDocument(t), func(response, code string, value map[string]any) {
		problem, ok := handler.FindProblem(code)
		require.True(t, ok, code)
		require.Equal(t, problem.Title, value["title"], code)
		require.EqualValues(t, problem.Status, value["status"], code)
		require.Equal(t, problem.Detail+more[code], value["detail"], code)
		require.Equal(t, code, value["code"])
		require.True(t, strings.HasSuffix(value["type"].(string), "/problems/"+code), code)
	})
}

func TestProblemsStandUnderTheirStatus(t *testing.T) {
	for path, item := range loadDocument(t).Paths.Map() {
		for status, ref := range item.Get.Responses.Map() {
			media := ref.Value.Content.Get("application/problem+json")
			if media == nil {
				continue
			}
			for code, example := range media.Examples {
				got := example.Value.Value.(map[string]any)["status"]
				want, err := strconv.Atoi(status)
				require.NoError(t, err)
				require.EqualValues(t, want, got, "%s %s", path, code)
			}
		}
	}
}

func TestEveryOperationIsFullyDescribed(t *testing.T) {
	doc := loadDocument(t)
	require.Equal(t, 5, doc.Paths.Len())
	for path, item := range doc.Paths.Map() {
		require.Nil(t, item.Post, path)
		for _, status := range []int{200, 400, 401, 402, 403, 404, 405, 408, 414, 422, 429, 431, 500, 503} {
			require.NotNil(t, item.Get.Responses.Status(status), "%s %d", path, status)
		}
		require.Contains(t, item.Get.Responses.Status(http.StatusOK).Value.Headers, "X-Credits-Remaining")
		for _, status := range []int{401, 403} {
			for header := range item.Get.Responses.Status(status).Value.Headers {
				require.False(t, strings.HasPrefix(header, "RateLimit-"), "%s %d", path, status)
			}
		}
	}
}

func TestEveryFieldIsRequiredAndDescribed(t *testing.T) {
	for name, ref := range loadDocument(t).Components.Schemas {
		schema := ref.Value
		require.NotEmpty(t, schema.Description, name)
		var fields []string
		for field, property := range schema.Properties {
			fields = append(fields, field)
			if property.Ref == "" {
				require.NotEmpty(t, property.Value.Description, "%s.%s", name, field)
				alwaysSet := strings.Contains(property.Value.Description, "Always set.")
				nullable := slices.Contains(property.Value.Type.Slice(), "null")
				require.False(t, alwaysSet && nullable, "%s.%s is both nullable and always set", name, field)
				require.True(t, alwaysSet || nullable || name == "Problem" || strings.HasSuffix(name, "Response"),
					"%s.%s does not say whether it may be null", name, field)
			}
		}
		require.ElementsMatch(t, fields, schema.Required, "%s: every field is always present", name)
	}
}

// TestTheContractListsEveryField of the document, and says of the same ones that they are never null.
func TestTheContractListsEveryField(t *testing.T) {
	contract, err := os.ReadFile("../../docs/contract.md")
	require.NoError(t, err)
	schemas := loadDocument(t).Components.Schemas
	for title, name := range map[string]string{"Company": "Company", "Director": "Director", "LLP": "LLP", "Search match": "SearchMatch"} {
		want := map[string]bool{} // by field, whether it is always set
		for field, property := range schemas[name].Value.Properties {
			want[field] = !slices.Contains(property.Value.Type.Slice(), "null")
			if field == "contact" {
				for part, p := range property.Value.Properties {
					want["contact."+part] = !slices.Contains(p.Value.Type.Slice(), "null")
				}
			}
		}
		_, table, found := strings.Cut(string(contract), "\n### "+title+"\n")
		require.True(t, found, title)
		table, _, _ = strings.Cut(table, "\n#")
		listed := map[string]bool{}
		for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| ([^|]*) \\|").FindAllStringSubmatch(table, -1) {
			for _, field := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(row[1], -1) {
				listed[field[1]] = strings.HasSuffix(row[2], ", always")
			}
		}
		require.Equal(t, want, listed, `docs/contract.md, "%s"`, title)
	}
}

// TestTheDocumentAndTheContractHaveEveryParameter that the handler reads from the query, and no other.
func TestTheDocumentAndTheContractHaveEveryParameter(t *testing.T) {
	contract, err := os.ReadFile("../../docs/contract.md")
	require.NoError(t, err)
	read, queried, documented, listed := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, source := range testkit.Texts(t, "../../handler/*.go") {
		for _, found := range regexp.MustCompile(`\bc\.queryParam\("(\w+)"\)`).FindAllStringSubmatch(source, -1) {
			read[found[1]] = true
		}
	}
	for path, item := range loadDocument(t).Paths.Map() {
		var ofQuery []string
		for _, parameter := range slices.Concat(item.Parameters, item.Get.Parameters) {
			switch name := parameter.Value.Name; parameter.Value.In {
			case "query":
				queried[name], documented[name] = true, true
				ofQuery = append(ofQuery, "`"+name+"`")
			case "path":
				documented[name] = true
			}
		}
		row := "| `GET " + path + "` | " + strings.TrimSpace(strings.Join(ofQuery, ", ")+" |")
		require.Contains(t, string(contract), row, `docs/contract.md, "Endpoints"`)
	}
	_, table, found := strings.Cut(string(contract), "\n## Parameters\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		listed[row[1]] = true
	}
	require.Equal(t, read, queried)
	require.Equal(t, documented, listed, `docs/contract.md, "Parameters"`)
}

// TestTheOrderOfFaultsIsTheContractsEverywhere: in the document, and in the guide.
func TestTheOrderOfFaultsIsTheContractsEverywhere(t *testing.T) {
	section := func(file, from, to string) string {
		t.Helper()
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, found, ok := strings.Cut(string(text), from)
		require.True(t, ok, file)
		found, _, ok = strings.Cut(found, to)
		require.True(t, ok, file)
		return strings.Join(strings.Fields(found), " ")
	}
	contract := section("../../docs/contract.md", "## Which answer wins", "##")
	faults := section("openapi.yaml", "the first of these answers: ", ".\n")
	guide := section("guides/errors.html", "the first of these is given: ", ".</p>")
	atContract, atGuide := -1, -1
	var inOrder []string
	for _, fault := range []struct{ code, words, guide string }{
		{handler.RouteNotFound, "route", "404 for an unknown path"}, {handler.MethodNotAllowed, "method", "405"}, {handler.InvalidAPIKey, "key", "401"},
		{handler.AddressNotAllowed, "its networks", "403"}, {handler.AccountSuspended, "a suspended account", "403"}, {handler.PlanWithoutAPIAccess, "plan", "403"},
		{charge.RateLimitExceeded, "rate", "429 for the rate"}, {" 400;", "parameters", "400"}, {charge.IdempotencyKeyReused, "a reused `Idempotency-Key`", "422"},
		{charge.KeyCreditsExceeded, "credits of the key", "429 for the credits of the key"}, {charge.MonthlyVolumeExceeded, "monthly volume", "429 for the monthly volume"},
		{charge.NotFoundCapExceeded, "not-found cap", "429 for the not-found cap"}, {charge.InsufficientCredits, "credits", "402"}, {"the result", "and last what was looked for", "and last what was looked for"},
	} {
		at := strings.Index(contract, fault.code)
		require.Greater(t, at, atContract, fault.code)
		atContract, inOrder = at, append(inOrder, fault.words)
		at = strings.Index(guide, fault.guide)
		require.GreaterOrEqual(t, at, atGuide, fault.guide)
		atGuide = at
	}
	require.Equal(t, strings.Join(inOrder, ", "), faults)
	for _, problem := range handler.Problems() {
		switch problem.Status { // of which the section names the codes one by one
		case 401, 402, 403, 422, 429, 503:
			require.Contains(t, contract, "`"+problem.Code+"`", `docs/contract.md, "Which answer wins"`)
		}
	}
}

// TestTheDocumentPassesTheLinter runs Redocly's recommended rules, without exceptions.
func TestTheDocumentPassesTheLinter(t *testing.T) {
	redocly := "tools/node_modules/.bin/redocly"
	_, missing := exec.LookPath("./" + redocly)
	if _, err := exec.LookPath("node"); err != nil || missing != nil {
		testkit.MissingTool(t, "the linter is not installed: install node, then run npm ci --ignore-scripts in host/reference/tools")
	}
	command := exec.Command(redocly, "lint", "--extends=recommended", "--format=json", "openapi.yaml")
	command.Env = append(command.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	out, err := command.Output()
	var report struct {
		Totals   struct{ Errors, Warnings, Ignored int }
		Problems []struct{ Message, RuleId string }
	}
	require.NoError(t, json.Unmarshal(out, &report), "redocly wrote %s", out)
	require.Empty(t, report.Problems)
	require.Zero(t, report.Totals)
	require.NoError(t, err)
}

// documentedCodes are the codes that have an example somewhere.
func documentedCodes(doc *openapi3.T) []string {
	var codes []string
	eachProblemExample(doc, func(_, code string, _ map[string]any) {
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	})
	return codes
}

func eachProblemExample(doc *openapi3.T, visit func(response, code string, value map[string]any)) {
	for name, ref := range doc.Components.Responses {
		media := ref.Value.Content.Get("application/problem+json")
		if media == nil {
			continue
		}
		for code, example := range media.Examples {
			visit(name, code, example.Value.Value.(map[string]any))
		}
	}
}

func codeOf(t *testing.T, body []byte) string {
	t.Helper()
	if len(body) == 0 {
		return "" // HEAD has no body
	}
	var problem struct{ Code string }
	require.NoError(t, json.Unmarshal(body, &problem), "%s", body)
	return problem.Code
}

// checkBody finds what the schemas allow and the service must not do: send a field
// unannounced, or a code that the document does not name for this response.
func checkBody(response *openapi3.Response, a answer) error {
	media := response.Content.Get(a.header.Get("Content-Type"))
	if media == nil {
		if len(a.body) > 0 {
			return fmt.Errorf("a body of %q is not documented", a.header.Get("Content-Type"))
		}
		return nil
	}
	var value any
	if err := json.Unmarshal(a.body, &value); err != nil {
		return err
	}
	if a.status >= 400 {
		code := fmt.Sprint(value.(map[string]any)["code"])
		if media.Examples[code] == nil {
			return fmt.Errorf("code %s is not documented for this response", code)
		}
	}
	return knownFields(media.Schema.Value, value, "")
}

func knownFields(schema *openapi3.Schema, value any, at string) error {
	switch value := value.(type) {
	case map[string]any:
		for field, member := range value {
			property := schema.Properties[field]
			if property == nil {
				return fmt.Errorf("field %s.%s is not documented", at, field)
			}
			if err := knownFields(property.Value, member, at+"."+field); err != nil {
				return err
			}
		}
	case []any:
		for _, member := range value {
			if err := knownFields(schema.Items.Value, member, at+"[]"); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestTheCheckSeesWhatIsNotDocumented spoils answers that are as documented, one thing at
// a time: each must be noticed.
func TestTheCheckSeesWhatIsNotDocumented(t *testing.T) {
	doc := loadDocument(t)
	require.NoError(t, check(doc, goodAnswer()))
	require.NoError(t, check(doc, goodProblem()))
	for name, spoil := range map[string]func(*answer){
		"a field that is missing":           func(a *answer) { a.replace(`"sandbox":true`, `"sand":true`) },
		"a field too many":                  func(a *answer) { a.replace(`"sandbox":true`, `"sandbox":true,"new":1`) },
		"a nested field too many":           func(a *answer) { a.replace(`"type":"llp"`, `"type":"llp","new":1`) },
		"null where it is always set":       func(a *answer) { a.replace(`"label":"AN LLP"`, `"label":null`) },
		"a value that is not enumerated":    func(a *answer) { a.replace(`"type":"llp"`, `"type":"person"`) },
		"a number as text":                  func(a *answer) { a.replace(`"credits_remaining":null`, `"credits_remaining":"7"`) },
		"a negative balance":                func(a *answer) { a.replace(`"credits_remaining":null`, `"credits_remaining":-1`) },
		"a match that is no identifier":     func(a *answer) { a.replace(`ZZZ-0001`, `ZZZ0001`) },
		"a header that is missing":          func(a *answer) { a.header.Del("X-Request-Id") },
		"a header too many":                 func(a *answer) { a.header.Set("X-New", "1") },
		"a header that is no number":        func(a *answer) { a.header.Set("RateLimit-Remaining", "many") },
		"a header that is another constant": func(a *answer) { a.header.Set("Cache-Control", "public") },
		"another content type":              func(a *answer) { a.header.Set("Content-Type", "text/html") },
		"a status that is not documented":   func(a *answer) { a.status = 206 },
		"a path that is not documented":     func(a *answer) { a.target = "/v1/people/1" },
		"a method that is not documented":   func(a *answer) { a.method = http.MethodPut },
	} {
		a := goodAnswer()
		spoil(&a)
		require.Error(t, check(doc, a), name)
	}
	for name, spoil := range map[string]func(*answer){
		"a code of another response":  func(a *answer) { a.replace("company_not_found", "llp_not_found") },
		"a code that nobody knows":    func(a *answer) { a.replace("company_not_found", "teapot") },
		"a problem without its id":    func(a *answer) { a.replace("request_id", "id") },
		"a code under another status": func(a *answer) { a.status = 400 },
	} {
		a := goodProblem()
		spoil(&a)
		require.Error(t, check(doc, a), name)
	}
}

func (a *answer) replace(old, new string) {
	a.body = []byte(strings.ReplaceAll(string(a.body), old, new))
}

func goodAnswer() answer {
	return withHeaders(answer{
		method: http.MethodGet, target: "/v1/search/companies?name=an", status: 200,
		body: []byte(`{"data":[{"value":"ZZZ-0001","label":"AN LLP","type":"llp"}],` +
			`"meta":{"request_id":"` + exampleID + `","credits_remaining":null,"sandbox":true}}`),
	}, "application/json")
}

func goodProblem() answer {
	return withHeaders(answer{
		method: http.MethodGet, target: "/v1/companies/U72900ZZ2015PTC999999", status: 404,
		body: []byte(`{"type":"https://registry.example/problems/company_not_found","title":"Company not found",` +
			`"status":404,"detail":"None.","code":"company_not_found","request_id":"` + exampleID + `"}`),
	}, "application/problem+json")
}

func withHeaders(a answer, contentType string) answer {
	a.header = http.Header{}
	for field, value := range everyAnswer {
		a.header.Set(field, value)
	}
	a.header.Set("Content-Type", contentType)
	a.header.Set("X-Request-Id", exampleID)
	a.header.Set("RateLimit-Limit", "30")
	a.header.Set("RateLimit-Remaining", "29")
	a.header.Set("RateLimit-Reset", "7")
	return a
}
