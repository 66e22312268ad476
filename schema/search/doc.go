// Package search keeps the search index of a registry database up to date: the tables search_name
// and search_index, which list each company and LLP under its name, normalised by package names, at
// a place that gives its rank. docs/search.md explains the search; its section "Keeping it up to
// date" describes this package.
//
// Read search.go first: Refresh either updates the index row by row (update.go, by FTS5's own
// statements) or builds it anew (builder.go). A Builder sorts the names (entry.go), collects
// the places of each term (postings.go) and writes FTS5's tables itself (install.go,
// segment.go), which is several times as fast as FTS5 is with millions of names.
//
// Invariants, which Check verifies:
//   - search_name has one row for each company and each LLP whose form is not empty, and
//     no other. Its label is the registered name, or empty if that is the form in capitals.
//   - Places grow in search order: active first, then the shorter registered name, alphabetical, by value. The
//     place of an active record is below 1<<32, the others are not.
//   - search_index has, for each row of search_name and for nothing else, the terms of its
//     name under its place.
//
// They hold for every record that is not in search_pending.
package search
