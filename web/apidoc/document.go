package apidoc

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document holds the parts of an OpenAPI document (3.1) that are shown. All others are ignored.
type document struct {
	Info struct{ Title, Version, Summary, Description string }
	Tags []struct{ Name, Description string }
	// Security names the schemes of operations that name none.
	Security []map[string][]string
	// Paths are in document order, like the members of every ordered value.
	Paths      ordered[pathItem]
	Components struct {
		SecuritySchemes ordered[struct{ Description string }] `yaml:"securitySchemes"`
		Parameters      map[string]parameter
		Headers         ordered[header]
		Responses       map[string]response
		Schemas         map[string]*schema
	}
}

// pathItem has the operations of a path, but OPTIONS and HEAD.
type pathItem struct {
	Parameters                    []parameter
	Get, Post, Put, Patch, Delete *operation
}

type operation struct {
	Tags                 []string
	ID                   string `yaml:"operationId"`
	Summary, Description string
	Role                 string `yaml:"x-role"` // that a token needs
	Security             []map[string][]string
	Parameters           []parameter
	RequestBody          struct{ Content ordered[media] } `yaml:"requestBody"`
	Responses            ordered[response]
}

type parameter struct {
	Ref                   string `yaml:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                *schema
	Example               yaml.Node
}

type header struct {
	Ref         string `yaml:"$ref"`
	Description string
	Schema      *schema
	Example     yaml.Node
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Headers     ordered[header]
	Content     ordered[media]
}

type media struct {
	Schema   *schema
	Examples ordered[struct {
		Summary string
		Value   yaml.Node
	}]
}

type schema struct {
	Ref                  string `yaml:"$ref"`
	Type                 kinds
	Format, Description  string
	Pattern              string
	Required             []string
	Properties           ordered[*schema]
	Items                *schema
	AdditionalProperties yaml.Node `yaml:"additionalProperties"`
	Enum                 []string
	Const                yaml.Node
	Default, Example     yaml.Node
	Minimum, Maximum     *int64
	MinLength            *int64 `yaml:"minLength"`
	MaxLength            *int64 `yaml:"maxLength"`
	MaxItems             *int64 `yaml:"maxItems"`
}

// kinds are the types that a value may have.
type kinds []string

// UnmarshalYAML reads one type or a list of them.
func (k *kinds) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*k = kinds{node.Value}
		return nil
	}
	return node.Decode((*[]string)(k))
}

// ordered is a mapping in the order of the document.
type ordered[T any] []entry[T]

type entry[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML reads a mapping.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want a mapping", node.Line)
	}
	*o = make(ordered[T], len(node.Content)/2)
	for i := range *o {
		(*o)[i].Name = node.Content[2*i].Value
		if err := node.Content[2*i+1].Decode(&(*o)[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// find returns the member of a name, nil if there is none.
func (o ordered[T]) find(name string) *T {
	for i := range o {
		if o[i].Name == name {
			return &o[i].Value
		}
	}
	return nil
}

// nameOf is the last part of a reference such as #/components/schemas/Company.
func nameOf(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// resolve replaces the references to parameters, headers and responses. Those to schemas stay, since
// schemas contain one another.
func (d *document) resolve() error {
	for i := range d.Paths {
		item := &d.Paths[i].Value
		if err := d.parameters(item.Parameters); err != nil {
			return err
		}
		for _, o := range item.operations() {
			if err := d.resolveOperation(o.Value); err != nil {
				return fmt.Errorf("%s: %w", o.Value.ID, err)
			}
		}
	}
	return nil
}

// operations returns the item's operations by method.
func (item *pathItem) operations() (all []entry[*operation]) {
	for _, o := range []entry[*operation]{
		{"GET", item.Get}, {"POST", item.Post}, {"PUT", item.Put}, {"PATCH", item.Patch}, {"DELETE", item.Delete},
	} {
		if o.Value != nil {
			all = append(all, o)
		}
	}
	return all
}

func (d *document) resolveOperation(o *operation) error {
	if err := d.parameters(o.Parameters); err != nil {
		return err
	}
	for i := range o.Responses {
		r := &o.Responses[i].Value
		if r.Ref != "" {
			found, ok := d.Components.Responses[nameOf(r.Ref)]
			if !ok {
				return fmt.Errorf("there is no %s", r.Ref)
			}
			*r = found
		}
		for j := range r.Headers {
			h := &r.Headers[j].Value
			if h.Ref == "" {
				continue
			}
			found := d.Components.Headers.find(nameOf(h.Ref))
			if found == nil {
				return fmt.Errorf("there is no %s", h.Ref)
			}
			*h = *found
		}
	}
	return nil
}

func (d *document) parameters(list []parameter) error {
	for i := range list {
		if list[i].Ref == "" {
			continue
		}
		found, ok := d.Components.Parameters[nameOf(list[i].Ref)]
		if !ok {
			return fmt.Errorf("there is no %s", list[i].Ref)
		}
		list[i] = found
	}
	return nil
}

// schema follows the reference of s, if it is one.
func (d *document) schema(s *schema) (*schema, error) {
	if s == nil || s.Ref == "" {
		return s, nil
	}
	found := d.Components.Schemas[nameOf(s.Ref)]
	if found == nil {
		return nil, fmt.Errorf("there is no %s", s.Ref)
	}
	return found, nil
}
