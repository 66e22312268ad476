// Package web holds what the pages of the service share, those of the reference that every edge serves
// and of the writer's dashboard: one style sheet, one icon, how suggestions are read and how samples are shown.
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

// Suggestion is a script (text/javascript) that reads the header Search-Suggestion.
//
//go:embed suggestion.js
var Suggestion []byte

// Samples is a script (text/javascript) that shows code in several languages as tabs.
//
//go:embed samples.js
var Samples []byte
