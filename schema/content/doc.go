// Package content keeps a hash of each record of a registry (tables content and content_part), from
// which a push finds the records that differ from the primary's.
//
// A record is a company with its appointments and directors list, an LLP with its partners, a director, a
// pincode, or a search entry. The tables are complete while content_whole has its row: then content has exactly
// one row, with the hash of the record's content, for each record that is not in content_pending; content_newer
// has the hashes of those that changed since. Fill builds content from all records and installs triggers that
// mark later changes. Refresh hashes only marked records, so a change of 1% costs no scan of the whole registry.
// A primary has no such triggers: there only push writes the tables. While both databases have the content that
// one Fill has made, they differ only in content_newer.
package content
