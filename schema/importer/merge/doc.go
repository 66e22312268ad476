// Package merge sorts the records of an import by table and key, and merges those of one key
// field by field.
//
// The merge is pure: the state of a record depends on the set of sources merged, each with its
// date, and not on their order or on repetition (see State). Sorting spills to temporary files
// when memory runs out (package extsort).
package merge
