// Package content keeps a hash of each record of a registry (tables content and content_part), by
// which a push finds the records that differ from the primary's.
//
// A record is a company with its appointments and directors list, an LLP with its partners, a
// director, a pincode, or an entry of the search. The tables are whole while content_whole has its
// row: then content has exactly one row for each record that is not in content_pending, with the
// hash of what the record holds. Fill makes them from all records, with triggers that mark what
// changes from then on, and Refresh hashes only that, so that a change of 1% does not cost a walk
// through all of India. At a primary there are no such triggers, and only push writes the tables.
package content
