// Package reference serves what people see of an edge: the start page with its search
// box, the API reference with try-it, the guides, a page for each problem code, and the
// OpenAPI document in both its forms.
//
// Every page is whole without scripts, but for the search box and the try-it. No page
// loads anything from another host, and the Content-Security-Policy of each says so:
// scripts and styles come from this host's files only, none stands in a page.
//
// Tests that need more than Go (a browser, the packages of tools/package.json) name it when
// they skip. To take a picture of
// every page, light and dark, on phone and desktop:
//
//	go test ./host/reference -run TestScreens -screens DIR
package reference
