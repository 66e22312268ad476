// Package generate writes made-up data in the official formats, for tests and benchmarks that
// need more data than the real files have, or different data.
//
// The same configuration gives the same bytes. A company depends only on the seed and its number,
// and rows are written one by one, so memory does not grow with the data. The
// proportions (states, years, classes, capital, statuses, lengths of names, how often words and
// names are repeated) follow the real files, and so do their defects: pincodes of zeros, replacement
// characters, malformed CINs, runs of spaces, words split where an old form ended its line.
//
// No one in the data is real: the names of people end in "(MADE-UP)", roads are made up, DINs
// begin with 9 and LLPINs with Z, as no issued one does.
package generate
