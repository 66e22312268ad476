package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"regedge/replicate/metering/writer"
)

// apiDocument is what the page of the writer's API shows of its OpenAPI document.
type apiDocument struct {
	Info struct{ Title, Description string }
	Tags []struct{ Name, Description string }
	// Paths has operations by path and method, and the parameters of a path under "parameters".
	Paths      map[string]map[string]yaml.Node
	Components struct {
		Parameters map[string]apiParameter
		Schemas    map[string]apiSchema
	}
}

type apiOperation struct {
	Tags        []string
	Summary     string
	Description string
	Role        string `yaml:"x-role"`
	Parameters  []apiReference
	RequestBody struct {
		Content map[string]struct{ Schema apiReference }
	} `yaml:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct{ Schema apiSchema }
	}
}

type apiReference struct {
	Ref string `yaml:"$ref"`
}

func (r apiReference) name() string { return r.Ref[strings.LastIndex(r.Ref, "/")+1:] }

type apiParameter struct{ Name, In, Description string }

type apiSchema struct {
	apiReference `yaml:",inline"`
	Type         any
	Format       string
	Description  string
	Required     []string
	Properties   map[string]apiSchema
	Items        *apiSchema
	Enum         []string
}

// apiGroup is a chapter of the page.
type apiGroup struct {
	Name, Description string
	Calls             []apiCall
}

// apiCall is one call of the API.
type apiCall struct {
	Method, Path, Summary, Description, Role string
	ID                                       string // of its heading, for links
	Parameters                               []apiParameter
	Body                                     []apiField
	Answer                                   string // such as "a page of Account"
	Fields                                   []apiField
}

type apiField struct {
	Name, Type, Description string
	Optional                bool
}

type apiData struct {
	Title, Description string
	Groups             []apiGroup
	Codes              []string
	Path               string // of the document
	Tokens             string // how to get one
}

// ownRole is the role of the calls that owners' tokens open.
const ownRole = "owner"

// ofOwners is the part of the page for owners.
func (a apiData) ofOwners() apiData {
	own := apiData{Title: "Your account by API", Path: a.Path, Codes: a.Codes,
		Description: "Every call takes a token of your settings: Authorization: Bearer reg_owner_…. It opens this account alone, " +
			"at most 120 times a minute. A change takes an Idempotency-Key of 16 to 128 characters and is made once under it. " +
			"Times are RFC 3339 in UTC, credits whole numbers. Every answer has an X-Request-Id."}
	for _, g := range a.Groups {
		if len(g.Calls) > 0 && g.Calls[0].Role == ownRole {
			own.Groups = append(own.Groups, g)
		}
	}
	return own
}

// readAPI reads the document for the page. It is read once, when the dashboard is made.
func readAPI(source []byte) (apiData, error) {
	var doc apiDocument
	if err := yaml.Unmarshal(source, &doc); err != nil {
		return apiData{}, fmt.Errorf("read the document of the API: %w", err)
	}
	data := apiData{Title: doc.Info.Title, Description: doc.Info.Description, Path: writer.DocumentPath,
		Tokens: "regedge trust operator add",
		Codes:  doc.Components.Schemas["Problem"].Properties["code"].Enum}
	for _, tag := range doc.Tags {
		data.Groups = append(data.Groups, apiGroup{Name: tag.Name, Description: tag.Description})
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			node, ok := doc.Paths[path][method]
			if !ok {
				continue
			}
			var o apiOperation
			if err := node.Decode(&o); err != nil {
				return apiData{}, fmt.Errorf("read %s %s: %w", method, path, err)
			}
			at := slices.IndexFunc(data.Groups, func(g apiGroup) bool { return len(o.Tags) > 0 && g.Name == o.Tags[0] })
			if at < 0 {
				return apiData{}, fmt.Errorf("%s %s has no chapter", method, path)
			}
			data.Groups[at].Calls = append(data.Groups[at].Calls, doc.call(method, path, &o))
		}
	}
	return data, nil
}

func (d *apiDocument) call(method, path string, o *apiOperation) apiCall {
	c := apiCall{Method: strings.ToUpper(method), Path: path, Summary: o.Summary, Description: o.Description, Role: o.Role,
		ID: method + strings.NewReplacer("/", "-", "{", "", "}", "").Replace(path)}
	for _, p := range o.Parameters {
		if found := d.Components.Parameters[p.name()]; found.In == "query" { // the page says once what is in a header
			c.Parameters = append(c.Parameters, found)
		}
	}
	c.Body = d.fields(o.RequestBody.Content["application/json"].Schema.name())
	answer := o.Responses["200"].Content["application/json"].Schema
	name := answer.name()
	switch {
	case answer.Items != nil:
		name = answer.Items.name()
		c.Answer = "a list of " + name
	case answer.Properties["data"].Items != nil:
		name = answer.Properties["data"].Items.name()
		c.Answer = "a page of " + name
	case len(d.fields(name)) > 0:
		c.Answer = name
	}
	c.Fields = d.fields(name)
	return c
}

// fields lists the properties of a schema, the needed ones first.
func (d *apiDocument) fields(name string) (fields []apiField) {
	schema := d.Components.Schemas[name]
	for property, s := range schema.Properties {
		kind := fmt.Sprint(s.Type)
		if types, ok := s.Type.([]any); ok { // the other one is null
			kind = fmt.Sprint(types[0], " or null")
		}
		if s.Format == "date-time" {
			kind = strings.Replace(kind, "string", "time", 1)
		}
		fields = append(fields, apiField{property, kind, s.Description, !slices.Contains(schema.Required, property)})
	}
	place := func(f apiField) int {
		if i := slices.Index(schema.Required, f.Name); i >= 0 {
			return i
		}
		return len(schema.Required)
	}
	slices.SortFunc(fields, func(a, b apiField) int { return cmp.Or(place(a)-place(b), strings.Compare(a.Name, b.Name)) })
	return fields
}

// apiPage shows the writer's API. It holds no secret, but is for those who have a token.
func (d *Dashboard) apiPage(*visit) (answer, error) {
	return answer{page: "api", title: d.api.Title, data: d.api}, nil
}
