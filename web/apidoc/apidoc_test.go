package apidoc

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// documents are the service's own, by name.
var documents = map[string]string{
	"lookups": "../../host/reference/openapi.yaml",
	"writer":  "../../replicate/metering/writer/openapi.yaml",
}

// eachDocument renders every document for a test, which also gets it as another library reads it.
func eachDocument(t *testing.T, test func(t *testing.T, doc *openapi3.T, page string)) {
	for name, path := range documents {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			doc, err := openapi3.NewLoader().LoadFromData(source)
			require.NoError(t, err)
			page, err := Render(Config{Document: source, Path: "/openapi.yaml", Token: "a-token", Try: name == "lookups", ProblemPages: "/problems/"})
			require.NoError(t, err)
			test(t, doc, string(page))
		})
	}
}

// shown are the operations that a page has to have.
func shown(doc *openapi3.T, visit func(path, method string, item *openapi3.PathItem, o *openapi3.Operation)) {
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			if method != "OPTIONS" {
				visit(path, method, item, o)
			}
		}
	}
}

// sectionOf cuts an operation's part out of a page.
func sectionOf(t *testing.T, page, id string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `<section class="op" id="`+id+`"`)
	require.True(t, found, "there is no %s", id)
	section, _, _ := strings.Cut(rest, "</section>")
	return section
}

func TestEveryOperationFieldHeaderAndCodeIsShown(t *testing.T) {
	eachDocument(t, func(t *testing.T, doc *openapi3.T, page string) {
		fields, codes, operations := 0, 0, 0
		shown(doc, func(path, method string, item *openapi3.PathItem, o *openapi3.Operation) {
			operations++
			section := sectionOf(t, page, o.OperationID)
			require.Contains(t, section, `<span class="verb `+method+`">`+method+`</span> <code>`+path+`</code>`)
			require.Contains(t, html.UnescapeString(section), o.Summary)
			require.Contains(t, page, `<a href="#`+o.OperationID+`">`, "the contents lead there")
			for _, p := range append(item.Parameters, o.Parameters...) {
				fields++
				require.Contains(t, section, `<li id="`+o.OperationID+"."+p.Value.Name+`">`)
			}
			if o.RequestBody != nil {
				fields += requireFields(t, section, o.OperationID+".body", o.RequestBody.Value.Content["application/json"].Schema)
			}
			for status, r := range o.Responses.Map() {
				for name := range r.Value.Headers {
					require.Contains(t, section, `<a href="#header-`+strings.ToLower(name)+`">`, "%s %s", o.OperationID, status)
				}
				if status[0] == '2' {
					require.Contains(t, section, `id="`+o.OperationID+".answer."+status+`"`)
					fields += requireFields(t, section, o.OperationID+".answer", r.Value.Content["application/json"].Schema)
					continue
				}
				for code, example := range r.Value.Content["application/problem+json"].Examples {
					codes++
					status := status
					if status == "default" {
						status = fmt.Sprint(example.Value.Value.(map[string]any)["status"])
					}
					require.Regexp(t, `<li id="`+o.OperationID+`\.`+code+`"><a class="http" href="#[^"]*">`+status+`</a> <a href="/problems/`+code+`"><code>`+code+`</code>`, section)
				}
			}
		})
		t.Log(operations, "operations,", fields, "fields,", codes, "errors,", len(page), "bytes")
		require.Greater(t, fields, 50)
	})
}

// requireFields looks for the anchors of all fields of a schema, those within others too, and counts them.
func requireFields(t *testing.T, section, under string, ref *openapi3.SchemaRef) (count int) {
	if ref == nil {
		return 0
	}
	s := ref.Value
	if s.Items != nil {
		return requireFields(t, section, under, s.Items)
	}
	for name, property := range s.Properties {
		id := under + "." + name
		require.Contains(t, section, `<li id="`+id+`"><p class="name"><a href="#`+id+`"><code>`+name+`</code></a>`)
		for _, value := range property.Value.Enum {
			if text, ok := value.(string); ok {
				require.Contains(t, section, "<code>"+text+"</code>", id)
			}
		}
		count += 1 + requireFields(t, section, id, property)
	}
	return count
}

func TestHeadersAreDescribedOnce(t *testing.T) {
	eachDocument(t, func(t *testing.T, doc *openapi3.T, page string) {
		shown(doc, func(_, _ string, _ *openapi3.PathItem, o *openapi3.Operation) {
			for _, r := range o.Responses.Map() {
				for name, h := range r.Value.Headers {
					require.Equal(t, 1, strings.Count(page, `<li id="header-`+strings.ToLower(name)+`"`), name)
					first, _, _ := strings.Cut(strings.TrimSpace(h.Value.Description), "\n")
					require.Contains(t, page, string(brief(first)), name)
				}
			}
		})
	})
}

func TestEveryLinkWithinAPageLeadsSomewhere(t *testing.T) {
	eachDocument(t, func(t *testing.T, _ *openapi3.T, page string) {
		ids := map[string]bool{}
		for _, match := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			require.False(t, ids[match[1]], "two have the id %s", match[1])
			ids[match[1]] = true
		}
		links := regexp.MustCompile(`(?:href="#|for="|aria-labelledby=")([^"]*)"`).FindAllStringSubmatch(page, -1)
		require.Greater(t, len(links), 100)
		for _, match := range links {
			require.True(t, ids[match[1]], "nothing has the id %s", match[1])
		}
	})
}

func TestAPageOfOneRoleHasItsOperationsAlone(t *testing.T) {
	page, err := Render(Config{Role: "b", Title: "Of b", Description: "For b.", Document: []byte(`
info: {title: Of all}
security: [{s: []}]
tags: [{name: T}, {name: U}]
paths:
  /x:
    get: {tags: [T], operationId: getX, x-role: a, summary: Of a}
    post: {tags: [T], operationId: makeX, x-role: b, summary: Of b, security: [{t: []}]}
  /y:
    get: {tags: [U], operationId: getY, x-role: a, summary: Also of a}
components: {securitySchemes: {s: {description: Scheme of a.}, t: {description: Scheme of b.}}}
`)})
	require.NoError(t, err)
	for _, shown := range []string{"makeX", ">Of b</h1>", "For b.", "Scheme of b.", ">T</a>"} {
		require.Contains(t, string(page), shown)
	}
	for _, other := range []string{"getX", "getY", "Of all", "Scheme of a.", ">U</a>"} {
		require.NotContains(t, string(page), other)
	}
}

func TestPreflightsAreNotListed(t *testing.T) {
	eachDocument(t, func(t *testing.T, doc *openapi3.T, page string) {
		require.NotContains(t, page, `verb OPTIONS`)
		for _, item := range doc.Paths.Map() {
			if item.Options != nil {
				require.NotContains(t, page, item.Options.OperationID)
				require.NotContains(t, page, html.EscapeString(item.Options.Summary))
			}
		}
		require.NotContains(t, page, ">Preflight<")
	})
}

func TestTextOfADocumentIsEscaped(t *testing.T) {
	const evil = `<script>alert(1)</script>`
	page, err := Render(Config{Token: `"` + evil, Document: []byte(`
info: {title: "` + evil + `", description: "` + evil + `"}
tags: [{name: T, description: "` + evil + `"}]
paths:
  /x/{p}:
    get:
      tags: [T]
      operationId: x
      summary: "` + evil + `"
      parameters: [{name: p, in: path, example: "` + evil + `", schema: {type: string, enum: ["` + evil + `"]}}]
      responses:
        '200': {description: "` + evil + `", content: {application/json: {examples: {e: {summary: "` + evil + `", value: "` + evil + `"}}}}}
        '400': {description: "` + evil + `", content: {application/problem+json: {examples: {e: {value: {title: "` + evil + `", detail: "` + evil + `"}}}}}}
`), Samples: func(string) []Sample { return []Sample{{Language: evil, Name: evil, Code: evil + "«p»"}} }})
	require.NoError(t, err)
	require.NotContains(t, string(page), "<script")
	require.Contains(t, string(page), html.EscapeString(evil))
}

func TestMistakesInADocumentAreErrors(t *testing.T) {
	const head = "tags: [{name: T}]\npaths: {/x: {get: {tags: [T], operationId: x, "
	for document, want := range map[string]string{
		"a: [":      "yaml",
		"paths: {}": "there are no paths",
		head + `parameters: [{$ref: '#/components/parameters/None'}]}}}`:                                                                "x: there is no #/components/parameters/None",
		head + `responses: {'200': {$ref: '#/components/responses/None'}}}}}`:                                                           "x: there is no #/components/responses/None",
		head + `responses: {'200': {headers: {H: {$ref: '#/components/headers/None'}}}}}}}`:                                             "x: there is no #/components/headers/None",
		head + `responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/None'}}}}}}}}`:                    "x: there is no #/components/schemas/None",
		head + "responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/S'}}}}}}}}\n" + recursive:         "x: a schema contains itself",
		head + `responses: {'200': {content: {application/json: {schema: {properties: {p: {$ref: '#/components/schemas/None'}}}}}}}}}}`: "x: there is no #/components/schemas/None",
		head + `responses: {'200': {content: {application/json: {examples: {e: {value: .nan}}}}}}}}}`:                                   "x: line 2: json: unsupported value",
		head + `responses: {'400': {content: {application/json: {examples: {e: {value: text}}}}}}}}}`:                                   "x: yaml",
		head + `responses: {'400': {content: {application/json: {examples: {e: {value: {title: .nan}}}}}}}}}}`:                          "x: line 2: json: unsupported value",
	} {
		_, err := Render(Config{Document: []byte(document)})
		require.ErrorContains(t, err, want, document)
	}
}

const recursive = "components: {schemas: {S: {properties: {s: {$ref: '#/components/schemas/S'}}}}}"

func TestTheKindOfAValueIsToldInWords(t *testing.T) {
	for given, want := range map[string]string{
		"type: string": "string", "type: array": "list", "{type: array, maxItems: 50}": "list, at most 50",
		"{type: string, format: date}": "date", "{type: [string, 'null'], format: date-time}": "time or null", "{type: [string, 'null'], format: date}": "date or null",
		"{type: integer, minimum: 1, maximum: 10}": "integer, 1 to 10", "{type: integer, minimum: 0}": "integer",
		"{type: integer, minimum: 5}": "integer, 5 or more", "{type: integer, maximum: 5}": "integer, at most 5",
		"{type: string, minLength: 21, maxLength: 21}": "string, 21 characters", "{type: string, minLength: 1, maxLength: 20}": "string, 1 to 20 characters",
		"{type: string, maxLength: 20}": "string, at most 20 characters", "{type: integer, default: 10, example: 3}": "integer, default 10",
	} {
		var s schema
		require.NoError(t, yaml.Unmarshal([]byte(given), &s), given)
		require.Equal(t, want, kindOf(&s), given)
	}
}

// TestWhatOperationsShareIsToldApart from what one alone has: its errors, and the answers with a header.
func TestWhatOperationsShareIsToldApart(t *testing.T) {
	p, err := newPage(Config{Token: "t", Samples: func(id string) []Sample { return []Sample{{Language: "Go", Name: "go", Code: id}} }, Document: []byte(`
tags: [{name: T}]
paths:
  /x:
    parameters: [{name: q, in: query, required: true, example: a b}, {name: Idempotency-Key, in: header}]
    get:
      tags: [T]
      operationId: getX
      responses:
        '200':
          headers: {All: {example: 7, schema: {minimum: 5}}, Most: {}, One: {}, Half: {}}
          content: {application/json: {schema: {type: array, items: {required: [must], properties: {must: {}, may: {}}}}, examples: {first: {summary: With ` + "`code`" + `, value: [1]}}}}
        '201': {headers: {All: {}, Most: {}, Half: {}}, content: {application/json: {}}}
        '404': {headers: {All: {}}, content: {application/problem+json: {examples: {missing: {value: {status: 1, detail: Own.}}}}}}
        default: {headers: {All: {}, Most: {}}, content: {application/problem+json: {examples: {busy: {value: {status: 429}}}}}}
    put:
      tags: [T]
      operationId: putX
      responses:
        '204': {content: {application/json: {}}}
        default: {content: {application/problem+json: {examples: {busy: {value: {status: 429}}}}}}
`)})
	require.NoError(t, err)
	get, put := p.Groups[0].Operations[0], p.Groups[0].Operations[1]
	require.Equal(t, []string{"GET", "PUT"}, []string{get.Method, put.Method})
	require.Equal(t, []problem{{"getX.missing", "404", "missing", "Own."}}, get.Own)
	require.Equal(t, []problem{{"getX.busy", "429", "busy", ""}}, get.Common)
	require.Empty(t, put.Own)
	require.Len(t, put.Common, 1)
	require.Equal(t, []headerUse{{"header-all", "All", ""}, {"header-most", "Most", "but 404"}, {"header-one", "One", "200"}, {"header-half", "Half", "200, 201"}}, get.Headers)
	require.Equal(t, []string{"7", "5 or more"}, []string{p.Headers[0].Example, p.Headers[0].Note})
	require.Equal(t, []example{{"200", "With code", Highlight("[\n  1\n]")}}, get.Examples, "made ones only where there is none")
	require.Equal(t, []example{{"204", "", Highlight("null")}}, put.Examples)
	require.Equal(t, "A list. Each member has:", get.Answers[0].Kind)
	require.Equal(t, []bool{true, false}, []bool{get.Answers[0].Fields[0].Required, get.Answers[0].Fields[1].Required})
	require.Equal(t, []string{"curl", "go"}, []string{get.Samples[0].Name, get.Samples[1].Name})
	require.Contains(t, get.Samples[0].Code, "/x?q=«q|url»")
	require.NotContains(t, get.Samples[0].Code, "«if q»", "it is always sent")
	require.Contains(t, get.Samples[0].Code, "\n«if Idempotency-Key»  -H \"Idempotency-Key: «Idempotency-Key»\" \\\n«end»  \"«base»/x")
}

func TestAMadeUpValueIsOfItsType(t *testing.T) {
	for given, want := range map[string]string{
		"type: string": `"…"`, "{type: string, enum: [all, read]}": `"all"`, "{type: string, format: date}": `"2026-11-25"`,
		"{type: string, format: date-time}": `"2026-11-25T09:00:00Z"`, "type: integer": "1", "type: number": "1", "type: boolean": "false", "type: object": "{}",
	} {
		var s schema
		require.NoError(t, yaml.Unmarshal([]byte(given), &s), given)
		require.Equal(t, want, madeScalar(&s), given)
	}
}
