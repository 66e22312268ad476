package apidoc

import (
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// field is a parameter, or a member of a body or an answer.
type field struct {
	ID, Name    string
	Kind        string // its type and what more is known of the value
	In          string // of parameters: path, query or header
	Required    bool
	Values      []string // if there are only some
	Description template.HTML
	Example     string
	Each        bool // Fields belong to each member of a list
	Fields      []field
}

// maxDepth bounds how deep fields may lie within one another.
const maxDepth = 8

func (d *document) parameterField(operation string, given parameter) (field, error) {
	s, err := d.schema(given.Schema)
	if err != nil {
		return field{}, err
	}
	f := field{
		ID: operation + "." + given.Name, Name: given.Name, Kind: kindOf(s), In: given.In, Required: given.Required,
		Description: brief(given.Description),
	}
	if s != nil {
		f.Values = s.Enum
	}
	if !given.Example.IsZero() {
		f.Example = given.Example.Value
	}
	return f, nil
}

// fields lists the properties of a schema under an id.
func (d *document) fields(s *schema, under string, depth int) (list []field, err error) {
	if s, err = d.schema(s); err != nil || s == nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.New("a schema contains itself")
	}
	for _, property := range s.Properties {
		f, err := d.field(property.Name, property.Value, under, depth)
		if err != nil {
			return nil, err
		}
		f.Required = slices.Contains(s.Required, property.Name)
		list = append(list, f)
	}
	return list, nil
}

func (d *document) field(name string, property *schema, under string, depth int) (field, error) {
	s, err := d.schema(property)
	if err != nil {
		return field{}, err
	}
	f := field{ID: under + "." + name, Name: name, Kind: kindOf(s), Values: s.Enum, Description: brief(s.Description)}
	inner := s
	if s.Items != nil {
		inner, f.Each = s.Items, true
	}
	f.Fields, err = d.fields(inner, f.ID, depth+1)
	return f, err
}

// kindOf describes a type: "string or null, 1 to 20 characters".
func kindOf(s *schema) string {
	if s == nil {
		return ""
	}
	parts := []string{}
	for _, kind := range s.Type {
		switch {
		case kind == "array":
			kind = "list"
		case s.Format == "date":
			kind = strings.Replace(kind, "string", "date", 1)
		case s.Format == "date-time":
			kind = strings.Replace(kind, "string", "time", 1)
		}
		parts = append(parts, kind)
	}
	kind := strings.Join(parts, " or ")
	if more := note(s); more != "" {
		kind += ", " + more
	}
	return kind
}

// note says what more is known of a value than its type, for people.
func note(s *schema) string {
	if s == nil {
		return ""
	}
	var parts []string
	add := func(format string, values ...any) { parts = append(parts, fmt.Sprintf(format, values...)) }
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		add("%d to %d", *s.Minimum, *s.Maximum)
	case s.Minimum != nil && *s.Minimum != 0:
		add("%d or more", *s.Minimum)
	case s.Maximum != nil:
		add("at most %d", *s.Maximum)
	}
	switch {
	case s.MinLength != nil && s.MaxLength != nil && *s.MinLength == *s.MaxLength:
		add("%d characters", *s.MinLength)
	case s.MinLength != nil && s.MaxLength != nil:
		add("%d to %d characters", *s.MinLength, *s.MaxLength)
	case s.MaxLength != nil:
		add("at most %d characters", *s.MaxLength)
	}
	if s.MaxItems != nil {
		add("at most %d", *s.MaxItems)
	}
	if !s.Default.IsZero() {
		add("default %s", s.Default.Value)
	}
	return strings.Join(parts, ", ")
}
