// Package importer imports the official files of the MCA register, and the service's own
// CSVs, into a registry database.
//
// docs/import-formats.md describes the formats and how each value is normalised. The stages
// of a run, each with what it holds in memory and on disk:
//
//	files, CSV or JSON, plain, gzip or zstd
//	  │
//	  │ read      package source, one goroutine: one file at a time, by rank: companies
//	  │ parse     and LLPs, contacts, directors, appointments, partners
//	  │             memory: 256 KB of input, a batch of 5,000 records; post offices by pincode
//	  ▼
//	batches of records
//	  │
//	  │ sort      merge.Sorters, one goroutine: by table and primary key
//	  │             memory: 8 to 32 MB a table; disk: sorted runs beside the registry,
//	  │             together about as large as the uncompressed input
//	  ▼
//	a complete table (written while later files are still read)
//	  │
//	  │ merge     merge.Groups reads the runs in key order, merge.State merges the records
//	  │           of one key, field by field
//	  │             memory: a batch
//	  ▼
//	merged records, in key order ─────────────────────┐
//	  │                                               │
//	  │ load      load.Store, the caller's goroutine  │ index   empty registry only: a
//	  │             memory: 64 MB of page cache       │         goroutine merges the names
//	  │             disk: a draft beside no registry, │         again, and sorts their terms
//	  │             else the registry's WAL           │         in temporary files
//	  ▼                                               ▼
//	tables company, llp, director, …          table search_index
//	  │                                               │
//	  └───────────────────────┬───────────────────────┘
//	                          │ release   the search index (built above, or updated by
//	                          │           the marks of changed names) and the row of the
//	                          ▼           release; then the commit, or the draft's new name
//	                  one registry file
//
// In an empty registry companies are written after directors and appointments, so that each
// company is inserted once, with its directors list.
//
// Invariants:
//   - Every row, or part of a document, that is read is counted once: as new, changed,
//     unchanged, rejected or left out (FileReport.check).
//   - The content of the database depends on which sources were merged, each with its as-of
//     date, and not on their order or on repetition (merge.State).
//   - A run is seen as a whole or not at all: it is one transaction, or a file that is renamed at
//     the end (load.draft). An interrupted run leaves nothing.
//   - E-mail addresses, phone numbers and addresses of directors and partners are neither
//     stored nor written to the rejects file.
package importer
