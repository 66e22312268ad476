package apidoc

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strings"
)

// Sample is a call as code in one language.
type Sample struct {
	// Language is for people, Name for tools: "Go" and "go".
	Language, Name string
	// Code may have marks. «base» is the address of the service, «token» Config.Token. «NAME» is the
	// value of a parameter as the content of a string in quotes, «NAME|url» as a part of a query,
	// «NAME|path» as one of a path, «NAME|number» as a number, 0 without one. What stands between
	// «if NAME» and «end» is left out while the parameter has no value.
	Code string
	// HTML is made of Code: a script finds the parameters' values in it.
	HTML template.HTML
}

// samples returns the code samples of one operation, curl first.
func (p *page) samples(d *document, v operationView, parameters []parameter, body *schema) ([]Sample, error) {
	curl, err := d.curl(v, parameters, body)
	if err != nil {
		return nil, err
	}
	list := []Sample{curl}
	if p.Samples != nil {
		list = append(list, p.Samples(v.ID)...)
	}
	values := map[string]string{"base": Base, "token": p.Token}
	for _, f := range v.Parameters {
		values[f.Name] = f.Example
	}
	for i := range list {
		list[i].HTML = fill(list[i].Code, values)
	}
	return list, nil
}

// curl writes a call as a command.
func (d *document) curl(v operationView, parameters []parameter, body *schema) (Sample, error) {
	var b strings.Builder
	b.WriteString("curl ")
	if v.Method != "GET" {
		fmt.Fprintf(&b, "-X %s ", v.Method)
	}
	b.WriteString(`-H "Authorization: Bearer «token»" \` + "\n")
	query, path := "", v.Path
	for _, given := range parameters {
		switch {
		case given.In == "path":
			path = strings.ReplaceAll(path, "{"+given.Name+"}", "«"+given.Name+"|path»")
		case given.In == "query" && given.Required:
			query += "&" + given.Name + "=«" + given.Name + "|url»"
		case given.In == "query":
			query += "«if " + given.Name + "»&" + given.Name + "=«" + given.Name + "|url»«end»"
		case given.In == "header":
			fmt.Fprintf(&b, "«if %[1]s»  -H \"%[1]s: «%[1]s»\" \\\n«end»", given.Name)
		}
	}
	if body != nil {
		made, err := d.made(body, 0)
		if err != nil {
			return Sample{}, err
		}
		fmt.Fprintf(&b, "  -H \"Content-Type: application/json\" \\\n  -d '%s' \\\n", made)
	}
	if i := strings.Index(query, "&"); i >= 0 { // the first one follows a question mark
		query = query[:i] + "?" + query[i+1:]
	}
	b.WriteString(`  "«base»` + path + query + `"` + "\n")
	return Sample{Language: "curl", Name: "curl", Code: b.String()}, nil
}

var mark = regexp.MustCompile(`«(if )?([A-Za-z_-]+)(?:\|(url|path|number))?»`)

// fill replaces the marks of a sample. Values of parameters go into elements with data-of, and what
// depends on a value into elements with data-if.
func fill(code string, values map[string]string) template.HTML {
	escaped := template.HTMLEscapeString(code)
	return template.HTML(mark.ReplaceAllStringFunc(escaped, func(found string) string {
		parts := mark.FindStringSubmatch(found)
		name, value := parts[2], values[parts[2]]
		switch {
		case name == "end":
			return "</span>"
		case parts[1] != "" && value == "":
			return `<span data-if="` + name + `" hidden>`
		case parts[1] != "":
			return `<span data-if="` + name + `">`
		case name == "base" || name == "token":
			return template.HTMLEscapeString(value)
		}
		return fmt.Sprintf(`<span data-of="%s" data-as="%s">%s</span>`, name, parts[3], template.HTMLEscapeString(written(value, parts[3])))
	}))
}

// written is a value as it stands in code.
func written(value, as string) string {
	switch as {
	case "url":
		return url.QueryEscape(value)
	case "path":
		return url.PathEscape(value)
	case "number":
		if value == "" {
			return "0"
		}
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // text always has a JSON form
	}
	return string(text[1 : len(text)-1])
}

// made is an example of a schema's value that the document does not give, as JSON.
func (d *document) made(s *schema, depth int) (string, error) {
	s, err := d.schema(s)
	if err != nil || s == nil || depth > maxDepth {
		return "null", err
	}
	indent := strings.Repeat("  ", depth)
	switch {
	case !s.Example.IsZero():
		return indented(&s.Example)
	case s.Items != nil:
		member, err := d.made(s.Items, depth+1)
		return "[\n" + indent + "  " + member + "\n" + indent + "]", err
	case len(s.Properties) == 0:
		return madeScalar(s), nil
	}
	var members []string
	for _, property := range s.Properties {
		value, err := d.made(property.Value, depth+1)
		if err != nil {
			return "", err
		}
		members = append(members, fmt.Sprintf("%s  %q: %s", indent, property.Name, value))
	}
	return "{\n" + strings.Join(members, ",\n") + "\n" + indent + "}", nil
}

func madeScalar(s *schema) string {
	kind := ""
	if len(s.Type) > 0 {
		kind = s.Type[0]
	}
	switch {
	case len(s.Enum) > 0:
		return `"` + s.Enum[0] + `"`
	case s.Format == "date-time":
		return `"2026-11-25T09:00:00Z"`
	case s.Format == "date":
		return `"2026-11-25"`
	case kind == "integer" || kind == "number":
		return "1"
	case kind == "boolean":
		return "false"
	case kind == "object":
		return "{}"
	}
	return `"…"`
}
