package apidoc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSamplesHaveTheValuesOfParameters(t *testing.T) {
	values := map[string]string{"base": "https://a.example", "token": "t", "name": `a "b" & c`, "none": "", "n": "5"}
	for code, want := range map[string]string{
		`"«base»/«name|url»"`:               `&#34;https://a.example/<span data-of="name" data-as="url">a+%22b%22+%26+c</span>&#34;`,
		`"«base»/«name|path»"`:              `&#34;https://a.example/<span data-of="name" data-as="path">a%20%22b%22%20&amp;%20c</span>&#34;`,
		`f("«name»")`:                       `f(&#34;<span data-of="name" data-as="">a \&#34;b\&#34; \u0026 c</span>&#34;)`,
		`f(«n|number», «none|number»)`:      `f(<span data-of="n" data-as="number">5</span>, <span data-of="none" data-as="number">0</span>)`,
		`a«if none»b«end»c«if n», «n»«end»`: `a<span data-if="none" hidden>b</span>c<span data-if="n">, <span data-of="n" data-as="">5</span></span>`,
		"«token» <x>":                       "t &lt;x&gt;",
	} {
		require.Equal(t, want, string(fill(code, values)), code)
	}
}

func TestCommandsSendABodyThatTheSchemaDescribes(t *testing.T) {
	page, err := Render(Config{Token: "t", Document: []byte(`
tags: [{name: T}]
paths:
  /things/{id}:
    post:
      tags: [T]
      operationId: make
      parameters:
        - {name: id, in: path, required: true, example: 7}
        - {name: q, in: query, example: a b}
      requestBody: {content: {application/json: {schema: {properties: {n: {type: integer}, at: {type: string, format: date-time}, l: {items: {type: string, example: x}}}}}}}
      responses: {'200': {description: Done.}}
`)})
	require.NoError(t, err)
	require.Contains(t, string(page), `curl -X POST -H &#34;Authorization: Bearer t&#34; \
  -H &#34;Content-Type: application/json&#34; \
  -d &#39;{
  &#34;n&#34;: 1,
  &#34;at&#34;: &#34;2026-11-25T09:00:00Z&#34;,
  &#34;l&#34;: [
    &#34;x&#34;
  ]
}&#39; \
  &#34;https://base.invalid/things/<span data-of="id" data-as="path">7</span><span data-if="q">?q=<span data-of="q" data-as="url">a+b</span></span>&#34;`)
}

// TestAFormAsksForWhatACallNeeds with the examples and the key filled in, and its answer is read aloud. Of the
// examples of answers the first is open.
func TestAFormAsksForWhatACallNeeds(t *testing.T) {
	page, err := Render(Config{Token: "k", Try: true, Document: []byte(`
tags: [{name: T}]
paths:
  /things/{id}:
    get:
      tags: [T]
      operationId: read
      parameters:
        - {name: id, in: path, required: true, example: a&b}
        - {name: q, in: query}
      responses: {'200': {description: Done., content: {application/json: {examples: {one: {summary: One, value: 1}, two: {summary: Two, value: 2}}}}}}
`)})
	require.NoError(t, err)
	for _, part := range []string{
		`name="id" data-in="path" value="a&amp;b" autocomplete="off" spellcheck="false" required>`,
		`name="q" data-in="query" value="" autocomplete="off" spellcheck="false" placeholder="optional">`,
		`class="key" value="k" autocomplete="off" spellcheck="false" required>`,
		`<div class="outcome" aria-live="polite" hidden></div>`,
		`<details name="read-examples" open><summary><span class="http good">200</span> One</summary>`,
		`<details name="read-examples"><summary><span class="http good">200</span> Two</summary>`,
	} {
		require.Contains(t, string(page), part)
	}
}
