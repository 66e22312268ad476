// Package record defines the data that the stages of an import share: the tables that an import
// fills, and records for their rows.
//
// It is a package of its own so that source, merge and load agree on it and need not import
// one another.
package record
