// Package record defines what the stages of an import pass on: the tables that an import
// fills, and records of their rows.
//
// It is a package of its own so that source, merge and load agree on it and need not import
// one another.
package record
