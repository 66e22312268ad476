// Package web holds what all pages of the service look like: one style sheet and one
// icon, shared by the reference that every edge serves and the writer's dashboard.
package web

import _ "embed"

// Style is the style sheet (text/css). It needs no other file.
//
//go:embed style.css
var Style []byte

// Icon is the mark of the service (image/svg+xml).
//
//go:embed icon.svg
var Icon []byte
