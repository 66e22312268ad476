// Package syncproto defines the messages between edges and the writer, and their binary form.
//
// # Messages
//
// An edge first sends Hello, once for each run of its process and each generation of the
// writer, and gets a session. Within the session it sends Sync messages on two lanes: one
// carries batches and wants and is answered at once; the other is held open by the writer
// until there is news. Any message may be lost, repeated, delayed or overtaken. A batch is
// applied once, by its sequence; news is a list of rows with versions, each the whole state of
// a lease. A reply repeats the number of the message that it answers, and answers no other.
//
// # Versions
//
// A message begins with its version. A program reads its own version and the next one, so that
// edges and writer can be upgraded in any order, one version at a time; see Version.
//
// # Encoding
//
// Numbers are varints, texts have their length in front. A decoder accepts only what its
// encoder writes: limits are checked, and left-over bytes are an error. Journals store batches
// and rows in the same form.
package syncproto
