// Package apidoc turns an OpenAPI document into an HTML page: a list of the calls, and for each its
// parameters, the fields and headers of its answers, every error, samples and examples. Every one of
// them has an address in the page.
//
// The page is made once, when a program starts, and needs no script. Reference.js adds what a script
// can: it sends a call, shows it in the samples, and marks the place in the list. Preflights
// (OPTIONS) and HEAD are left out: nobody writes them.
package apidoc
