// Package push replaces the registry at a libSQL primary by a local one, record by record, and goes
// back to an earlier release in the same way.
//
// A record is a company with its appointments and directors list, an LLP with its partners, a
// director, a pincode, or an entry of the search. Both databases have a hash of each record in the
// table content, spread evenly over buckets by a hash of its key. Push compares sums over ranges of
// buckets, divides the ranges that differ, and compares single records at last, so that little is
// read over the network to find the differences.
//
// The differences are written in transactions of one call each. Invariants:
//   - Records that one answer shows together are written in one transaction if both change: a
//     company or LLP, its search entry, and the directors that it names.
//   - Each transaction also writes the hashes of its records, and claims the row of pushing with
//     the token of its push. So an interrupted push can be run again and writes what still
//     differs, and of two pushes at once only the later one goes on.
//   - The release is written last, after all sums were found equal.
//
// Push reads from a snapshot: a copy of the registry file, made once for each release and kept, so
// that an import can go on meanwhile and an earlier release can be pushed again.
//
// docs/design.md, "Push and releases", describes the protocol.
package push
