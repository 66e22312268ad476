// Package reference serves an edge's pages for people: the start page with its search box,
// the API reference (of package apidoc) with forms to try it, the guides, a page for each
// problem code, and the OpenAPI document as YAML and JSON.
//
// Everything but the search box and those forms works without scripts. The
// Content-Security-Policy allows scripts and styles from this host's files only, none
// inline, and nothing from other hosts.
//
// Tests that need more than Go (a browser, the packages of tools/package.json) name it when
// they skip. To take a picture of every page, light and dark, on phone and desktop:
//
//	go test ./host/reference -run TestScreens -screens DIR
package reference
