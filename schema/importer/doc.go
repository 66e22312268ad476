// Package importer reads the official files of the register, and the service's own CSVs,
// into a registry database. docs/import-formats.md describes the formats and how each
// value is normalised.
//
// Invariants:
//   - Every row or part of a document that is read is counted once, as new, changed,
//     unchanged, rejected or left out (FileReport.check).
//   - The content of the database depends on which sources were merged, each with its
//     as-of date, and not on their order or on repetition (see state).
//   - A transaction holds whole records. What an interrupted run has committed stays, and
//     the same run again completes it, its release included (table unreleased). Boards, the
//     search index and the index of appointments that it has left out are marked as such,
//     or made by the next run when they are not there.
//   - E-mail addresses, phone numbers and addresses of directors and partners are neither
//     stored nor written to the rejects file.
//
// A run reads first and writes then (intake, pipeline): one goroutine parses, one puts the
// records in order by table and key, in files where memory ends (package extsort), and the
// caller's merges each table, in order, into the database. Companies are written while the
// files of persons are still read. Tables that are empty at the start are filled without
// looking into them; the search index of an empty register is built beside.
package importer
