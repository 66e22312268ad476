// Package verify reads a registry file and reports whether it is whole.
//
// Whole means: the file is a registry with a release and no later changes; each table has as many
// records as the release says; every company and LLP has its search entry, and every entry its
// record; directors lists and districts match the rows that they are derived from; the sums of a
// pushed snapshot are right. Each violation is one of Report.Problems, in a sentence.
//
// Quick takes seconds for a registry of the whole country: it counts, compares the search with the
// records, and looks closer at a sample. Thorough reads everything, SQLite's own structures too, and
// makes a digest of each table, by which two files can be compared. The memory of both hardly
// grows with the registry: 42 MB for 0.2 million names, 73 MB for 3.9 million.
//
// All is read in one transaction, so that an import or a push may go on beside it.
package verify
