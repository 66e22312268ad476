package search

import "regedge/handler/names"

// Terms is what search_index holds of a name: the text that the row of the name is put
// in with, and taken out with. For who brings the index of one database to another.
func Terms(name string) string { return string(names.AppendTerms(nil, name)) }
