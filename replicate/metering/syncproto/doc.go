// Package syncproto is what edges and the writer say to one another, and its binary form.
//
// An edge first says Hello, once for each process and each generation of the writer, and
// gets a session. Within a session it sends Sync messages on two lanes: one that carries
// batches and wants and is answered at once, one that is held open until there is news.
// Every message may be lost, repeated, delayed or overtaken: a batch is applied once by
// its sequence, and news is a list of absolute rows with versions. A reply tells the number
// of the message that it answers, and is not taken for one to another.
//
// A message begins with its version. A program reads messages of its own version and of
// the one after, so that edges and writer can be upgraded in any order, one version at a
// time; see Version.
//
// Numbers are varints, texts have their length in front. A decoder takes nothing that
// its encoder would not write: limits are checked, and bytes left over are an error.
package syncproto
