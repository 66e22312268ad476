// Package push brings the registry at a libSQL primary to what a local registry holds,
// by the records that differ, and back to an earlier release.
//
// A record is a company with its appointments and board, an LLP with its partners, a director, a
// pincode, or an entry of the search. Both sides keep a hash of each in the table
// content, spread over buckets by a hash of its key. Sums over ranges of buckets are
// compared first, then smaller ranges where they differ, then single records: nothing
// else is read over the network to find what changed.
//
// What changed is written in transactions of one call each. Invariants:
//   - Records that an answer shows together and that both change are written together: a
//     company or LLP, its search entry, and the directors that it names.
//   - Each transaction writes its records' hashes too, and claims the row of pushing with
//     the token of its push. So a push can be interrupted at any moment and goes on with
//     what still differs, and two pushes never mix.
//   - The release is written last, after all sums were found equal.
//
// What is pushed is a snapshot: a copy of the registry file, made once for each release
// and kept, so that an import may go on meanwhile and an earlier release can be brought
// back.
package push
