// Package names brings names of companies and LLPs to the form that searches compare, so that
// case, punctuation, spacing and the usual abbreviations do not matter, and makes the terms
// under which the index finds them. docs/search.md, "Names are compared in one form", has the
// rules as a table.
//
// A form is words of lower-case ASCII letters, digits and non-ASCII letters with one space
// between them; it may be empty. The package is string work without tables or regular
// expressions, small enough for the component.
//
// names.go makes the form with fold.go and legal.go. terms.go has the table of terms and makes
// those of a name, query.go those that a search asks for.
package names
