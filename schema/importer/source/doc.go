// Package source reads the official files and the service's own CSVs into records.
//
// It undoes compression, recognises the format of a file by its header, splits rows and
// documents, and normalises dates, statuses, addresses and the like
// (docs/import-formats.md). It knows no SQL. A row that can't be taken becomes a
// record.Reject with a reason, and reading goes on; only an error of the source itself ends a
// file.
//
// E-mail addresses, phone numbers and addresses of directors and partners are never copied,
// not even into a reject.
package source
