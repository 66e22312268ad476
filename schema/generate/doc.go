// Package generate writes made-up registers in the official formats, for tests and
// benchmarks that need more data, or other data, than the real files give.
//
// The same configuration gives the same bytes. Rows are made one after another and
// never held, so that memory does not grow with the register: what one company is
// follows from the seed and its number alone. The proportions (states, years, classes,
// capital, statuses, lengths of names, words that return) follow the real files, and so
// does what is wrong with them: pincodes of zeros, replacement characters, malformed
// CINs, runs of spaces, words split where an old form ended its line.
//
// Nobody in them is real: the names of people end in "(MADE-UP)", addresses lie in
// made-up roads, DINs begin with 9 and LLPINs with Z, as none that was given out.
package generate
