package apidoc

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
)

//go:embed page.html
var pageSource string

// Style is the page's style sheet (text/css). It needs that of package web.
//
//go:embed reference.css
var Style []byte

// Script is the page's script (text/javascript), a module that imports samples.js of package web.
//
//go:embed reference.js
var Script []byte

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"list": newFieldList, "problems": newProblemList, "operation": newOperationPart,
}).Parse(pageSource))

// Render makes the page of a document: the elements of a document's main element, without a frame. It
// contains Base. An error is a mistake in the document.
func Render(config Config) (template.HTML, error) {
	p, err := newPage(config)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return "", fmt.Errorf("show the document: %w", err)
	}
	return template.HTML(b.String()), nil
}

// fieldList is the data of the template for a list of fields.
type fieldList struct {
	Fields []field
	Sent   bool // by the client: shows the required fields, not the optional ones
	Open   bool // shows the fields within them at once
}

func newFieldList(fields []field, sent, open bool) fieldList { return fieldList{fields, sent, open} }

// problemList are problems, and where their codes have pages.
type problemList struct {
	Problems []problem
	Pages    string
}

func newProblemList(problems []problem, p *page) problemList {
	return problemList{problems, p.ProblemPages}
}

// operationPart is an operation with its page.
type operationPart struct {
	Operation operationView
	Page      *page
}

func newOperationPart(o operationView, p *page) operationPart { return operationPart{o, p} }
