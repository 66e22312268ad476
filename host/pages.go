package main

import (
	_ "embed"
	"fmt"

	"regedge/host/reference"
)

// document is the description of the API.
//
//go:embed openapi.yaml
var document []byte

// pages are what people see of an edge. Without --docs-url, samples name the host that
// the page was asked from.
func (s *serving) pages() (*reference.Site, error) {
	site, err := reference.New(reference.Config{Document: document, BaseURL: s.DocsURL, DashboardURL: s.DashboardURL})
	if err != nil {
		return nil, fmt.Errorf("make pages: %w", err)
	}
	return site, nil
}
