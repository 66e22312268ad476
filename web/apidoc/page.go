package apidoc

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Config says what a page shows beside its document.
type Config struct {
	// Document is the OpenAPI document, in YAML.
	Document []byte
	// Title, Summary and Description take the place of the document's where they are set.
	Title, Summary, Description string
	// Role shows only the operations with this x-role, all if it is empty.
	Role string
	// Path is where the document is served.
	Path string
	// Samples returns the samples of a call beside curl, nil for none.
	Samples func(operation string) []Sample
	// Token stands in the samples behind Bearer.
	Token string
	// Try adds forms that send calls, with Token in them.
	Try bool
	// ProblemPages is the path prefix of the codes' pages, such as /problems/; empty if there are none.
	ProblemPages string
	// ErrorsPage is the address of the page about all codes.
	ErrorsPage string
}

// Base is the placeholder in a page for the address of the service, such as https://api.example.com. The
// server of the page replaces it.
const Base = "https://base.invalid"

// page is the template's data.
type page struct {
	Config
	Version, Base  string
	About          template.HTML
	Authentication template.HTML
	Groups         []group
	Headers        []headerView
	Problem        []field
	ProblemExample template.HTML
}

// group is a chapter: the operations of a tag.
type group struct {
	ID, Name    string
	Description template.HTML
	Operations  []operationView
}

type operationView struct {
	ID, Method, Path, Summary, Role string
	Description                     template.HTML
	Parameters                      []field
	Body                            []field
	Answers                         []answer
	Headers                         []headerUse
	Own, Common                     []problem // Common can occur in every operation of the document
	Samples                         []Sample
	Examples                        []example
}

// answer is a success.
type answer struct {
	Status      string
	Description template.HTML
	Kind        string // "list of Account", empty for an object
	Fields      []field
}

// problem is an error that an operation can answer.
type problem struct {
	ID, Status, Code string
	Detail           template.HTML
}

type headerView struct {
	ID, Name, Note, Example string
	Description             template.HTML
}

// headerUse is a header of an operation's answers, and with which statuses it comes.
type headerUse struct{ ID, Name, On string }

type example struct {
	Status, Summary string
	JSON            template.HTML
}

// page makes the view of a document.
func newPage(config Config) (*page, error) {
	var d document
	if err := yaml.Unmarshal(config.Document, &d); err != nil {
		return nil, err
	}
	if len(d.Paths) == 0 {
		return nil, errors.New("there are no paths")
	}
	if err := d.resolve(); err != nil {
		return nil, err
	}
	d.Paths = ofRole(d.Paths, config.Role)
	config.Title, config.Summary = cmp.Or(config.Title, d.Info.Title), cmp.Or(config.Summary, d.Info.Summary)
	p := &page{Config: config, Base: Base, Version: d.Info.Version, About: markdown(cmp.Or(config.Description, d.Info.Description))}
	p.Authentication = d.authentication()
	if err := p.addGroups(&d); err != nil {
		return nil, err
	}
	p.divideProblems()
	p.addHeaders(&d)
	var err error
	if s := d.Components.Schemas["Problem"]; s != nil {
		p.Problem, err = d.fields(s, "problem", 0)
	}
	return p, err
}

// ofRole leaves out the operations of other roles.
func ofRole(paths ordered[pathItem], role string) ordered[pathItem] {
	for i := range paths {
		item := &paths[i].Value
		for _, o := range []**operation{&item.Get, &item.Post, &item.Put, &item.Patch, &item.Delete} {
			if role != "" && *o != nil && (*o).Role != role {
				*o = nil
			}
		}
	}
	return paths
}

// authentication describes the schemes that the operations use.
func (d *document) authentication() template.HTML {
	used := map[string]bool{}
	for i := range d.Paths {
		for _, o := range d.Paths[i].Value.operations() {
			security := d.Security
			if len(o.Value.Security) > 0 {
				security = o.Value.Security
			}
			for _, requirement := range security {
				for name := range requirement {
					used[name] = true
				}
			}
		}
	}
	var all template.HTML
	for _, scheme := range d.Components.SecuritySchemes {
		if used[scheme.Name] {
			all += markdown(scheme.Value.Description)
		}
	}
	return all
}

func (p *page) addGroups(d *document) error {
	for _, tag := range d.Tags {
		g := group{ID: slug(tag.Name), Name: tag.Name, Description: markdown(tag.Description)}
		for i := range d.Paths {
			item := &d.Paths[i].Value
			for _, o := range item.operations() {
				if !slices.Contains(o.Value.Tags, tag.Name) {
					continue
				}
				v, err := p.operation(d, o.Name, d.Paths[i].Name, item, o.Value)
				if err != nil {
					return fmt.Errorf("%s: %w", o.Value.ID, err)
				}
				g.Operations = append(g.Operations, v)
			}
		}
		if len(g.Operations) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	return nil
}

func slug(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

func (p *page) operation(d *document, method, path string, item *pathItem, o *operation) (v operationView, err error) {
	v = operationView{
		ID: o.ID, Method: method, Path: path, Summary: o.Summary, Role: o.Role, Description: markdown(o.Description),
		Headers: headersOf(o),
	}
	parameters := slices.Concat(item.Parameters, o.Parameters)
	for _, given := range parameters {
		f, err := d.parameterField(o.ID, given)
		if err != nil {
			return v, err
		}
		v.Parameters = append(v.Parameters, f)
	}
	var body *schema
	for _, content := range o.RequestBody.Content {
		body = content.Value.Schema
		if v.Body, err = d.fields(body, o.ID+".body", 0); err != nil {
			return v, err
		}
	}
	for _, r := range o.Responses {
		if r.Name[0] != '2' {
			if err := p.addProblems(&v, r.Name, &r.Value); err != nil {
				return v, err
			}
			continue
		}
		if err := v.addSuccess(d, r.Name, &r.Value); err != nil {
			return v, err
		}
	}
	v.Samples, err = p.samples(d, v, parameters, body)
	return v, err
}

func (v *operationView) addSuccess(d *document, status string, r *response) error {
	a := answer{Status: status, Description: brief(r.Description)}
	for _, content := range r.Content {
		s, err := d.schema(content.Value.Schema)
		if err != nil {
			return err
		}
		if len(v.Answers) == 0 && a.Fields == nil { // other media types and successes have the same content
			if s != nil && s.Items != nil {
				a.Kind = "A list. Each member has:"
				s = s.Items
			}
			if a.Fields, err = d.fields(s, v.ID+".answer", 0); err != nil {
				return err
			}
		}
		if err := v.addExamples(d, status, &content.Value); err != nil {
			return err
		}
	}
	v.Answers = append(v.Answers, a)
	return nil
}

func (v *operationView) addExamples(d *document, status string, m *media) error {
	for i := range m.Examples {
		text, err := indented(&m.Examples[i].Value.Value)
		if err != nil {
			return err
		}
		v.Examples = append(v.Examples, example{status, strings.ReplaceAll(m.Examples[i].Value.Summary, "`", ""), Highlight(text)})
	}
	if len(m.Examples) > 0 || len(v.Examples) > 0 {
		return nil
	}
	made, err := d.made(m.Schema, 0)
	if err != nil {
		return err
	}
	v.Examples = append(v.Examples, example{status, "", Highlight(made)})
	return nil
}

// addProblems adds the problems of a status: one for each example, whose name is its code.
func (p *page) addProblems(v *operationView, status string, r *response) error {
	for _, content := range r.Content {
		for _, e := range content.Value.Examples {
			var shown struct{ Status, Detail string }
			if err := e.Value.Value.Decode(&shown); err != nil {
				return err
			}
			if status != "default" {
				shown.Status = status
			}
			v.Own = append(v.Own, problem{v.ID + "." + e.Name, shown.Status, e.Name, brief(shown.Detail)})
			if p.ProblemExample == "" {
				text, err := indented(&e.Value.Value)
				if err != nil {
					return err
				}
				p.ProblemExample = Highlight(text)
			}
		}
		if len(content.Value.Examples) == 0 {
			v.Own = append(v.Own, problem{ID: v.ID + "." + status, Status: status, Detail: brief(r.Description)})
		}
	}
	return nil
}

// divideProblems moves the problems that every operation has behind those that only some have.
func (p *page) divideProblems() {
	count, operations := map[string]int{}, 0
	each := func(visit func(*operationView)) {
		for i := range p.Groups {
			for j := range p.Groups[i].Operations {
				visit(&p.Groups[i].Operations[j])
			}
		}
	}
	each(func(v *operationView) {
		operations++
		for _, e := range v.Own {
			count[e.Status+e.Code]++
		}
	})
	each(func(v *operationView) {
		all := v.Own
		v.Own = nil
		for _, e := range all {
			if count[e.Status+e.Code] == operations {
				v.Common = append(v.Common, e)
			} else {
				v.Own = append(v.Own, e)
			}
		}
	})
}

// headersOf lists the headers of an operation's answers in the order in which they first come.
func headersOf(o *operation) (list []headerUse) {
	on := map[string][]string{}
	for _, r := range o.Responses {
		for _, h := range r.Value.Headers {
			if on[h.Name] == nil {
				list = append(list, headerUse{ID: headerID(h.Name), Name: h.Name})
			}
			on[h.Name] = append(on[h.Name], r.Name)
		}
	}
	for i := range list {
		list[i].On = among(on[list[i].Name], o.Responses)
	}
	return list
}

// among lists the statuses with which a header comes or, if that is shorter, the ones without it. It is
// empty if the header comes with all statuses.
func among(on []string, all ordered[response]) string {
	var without []string
	for _, r := range all {
		if !slices.Contains(on, r.Name) {
			without = append(without, r.Name)
		}
	}
	switch {
	case len(without) == 0:
		return ""
	case len(without) < len(on):
		return "but " + strings.Join(without, ", ")
	}
	return strings.Join(on, ", ")
}

func headerID(name string) string { return "header-" + strings.ToLower(name) }

// addHeaders describes each header that an operation names, once.
func (p *page) addHeaders(d *document) {
	seen := map[string]bool{}
	for _, path := range d.Paths {
		for _, o := range path.Value.operations() {
			for _, r := range o.Value.Responses {
				for _, h := range r.Value.Headers {
					if seen[h.Name] {
						continue
					}
					seen[h.Name] = true
					v := headerView{ID: headerID(h.Name), Name: h.Name, Description: brief(h.Value.Description), Note: note(h.Value.Schema)}
					if !h.Value.Example.IsZero() {
						v.Example = h.Value.Example.Value
					}
					p.Headers = append(p.Headers, v)
				}
			}
		}
	}
}
