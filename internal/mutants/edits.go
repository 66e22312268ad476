package main

import (
	"cmp"
	"slices"
	"strings"
)

// edit replaces cut bytes of a file, from offset on, by text.
type edit struct {
	offset, cut int
	closes      bool // closes a bracket that another edit opened: inner ones come first
	size        int  // size of the edited node, in bytes
	order       int  // order among the edits of one node
	text        string
}

// apply makes the edits in source. Edits at one offset nest as their nodes do.
func apply(source string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.offset != b.offset {
			return cmp.Compare(a.offset, b.offset)
		}
		if a.closes != b.closes {
			if a.closes {
				return -1
			}
			return 1
		}
		if a.cut != b.cut { // the replacement of an operator comes after what is inserted before it
			return cmp.Compare(a.cut, b.cut)
		}
		if a.closes {
			return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(b.order, a.order))
		}
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.order, b.order))
	})
	var out strings.Builder
	at := 0
	for _, e := range edits {
		if e.offset > at {
			out.WriteString(source[at:e.offset])
			at = e.offset
		}
		out.WriteString(e.text)
		at = max(at, e.offset+e.cut)
	}
	out.WriteString(source[at:])
	return out.String()
}
