// Package verify reads a registry file and says whether it is whole.
//
// Whole means: the file is a registry with a release and nothing after it; each table has as many
// records as the release says; every company and LLP has its entry in the search, and no entry
// stands alone; directors lists and districts follow from what they are derived from; the sums of a
// pushed snapshot are right. What is not whole is a Report.Problem, in a sentence.
//
// Quick takes seconds for a registry of the whole country: it counts, compares the search with the
// records, and looks closer at a sample. Thorough reads everything, SQLite's own structures too, and
// makes a digest of each table, by which two files can be compared. The memory of both hardly
// grows with the registry: 42 MB for 0.2 million names, 73 MB for 3.9 million.
//
// All is read in one transaction, so that an import or a push may go on beside it.
package verify
