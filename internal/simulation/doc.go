// Package simulation runs a writer and several edges, as they are in production, under a clock,
// a network and disks that follow one seed: the same seed makes the same run.
//
// The parts under test are complete: writer.Writer with its API, its group commit and its SQL
// ledger (SQLite in memory), and meter.Meter with its journal, its leases and its sync
// messages. Only their environment is simulated:
//
//   - the network loses, repeats, delays and reorders messages and loses replies. While a
//     message is pending other steps run, of the same edge too;
//   - in half of the runs a rogue node sends what it likes under its valid token: usage, voids and returns
//     of any size, of any account and epoch, and nonsense. It claims that the ledger was restored, and declares
//     leases that nobody granted;
//   - in some of the runs somebody answers edges in the writer's place, under its name: with grants of any
//     account and window, acknowledgements, ends of epochs, another node's replies, and garbled bytes;
//   - calls to an edge's disk hang while other steps run, its own charges too, if it is a sync that hangs;
//   - an edge's disk is full, fails to sync, or is erased, swapped or replaced by an older
//     copy. The process may end in the middle of a write. In half of the runs segments of the
//     journal are written through memory. Pages that were not synced reach the disk at any
//     time and in any order, and a power cut leaves any subset of them, or what a removed file had
//     there. Bits flip in what was durable, in records, snapshots and heads of frames, and in the
//     batches that were reported;
//   - the ledger's database fails at any statement, hangs for up to 18 s, commits and returns an error,
//     ends with its writer, or is restored from a backup;
//   - the ledger's database refuses a row of the rogue node's, whose message is
//     committed together with an edge's;
//   - the access database hangs, so that no call to it returns before its deadline, fails at a write, or
//     refuses the row of an account;
//   - requests of operators and the answers to them are lost. An operator asks for the same change again
//     under its Idempotency-Key, at any later time: also after a crash, a takeover or a restore, within
//     the seven days for which the writer keeps answers;
//   - a second writer takes the ledger over, or is started by mistake; replies of any earlier time, and of
//     writers before, come as answers to later messages;
//   - every clock is wrong by up to 30 s, and days pass. Clocks of edges, or the writer's, jump by
//     minutes to years, forward and back, and become right again.
//
// # What is checked
//
// After every step a checker reads the database and counts the clients' answers. It shares no
// code with the ledger (G1 to G8 are in docs/design.md, "Guarantees"):
//
//  1. spent ≤ bought + compensated, and what clients got ≤ the same (G1).
//  2. bought + compensated = left + leased + spent + lost, none of them negative; leased and
//     lost are the sums over the leases, spent over the usage (G3).
//  3. No edge's usage exceeds the answers with which its clients were charged (G2): a request
//     whose answer was cut off counts as one that may have been charged.
//  4. A 402 is sent only for an account of which nothing was left or leased elsewhere within
//     the last two seconds by the clocks of edge and writer: the edge asks once a second, and so
//     often does a superseded writer look whether it is one (G5, G6).
//  5. A ledger that waits for its edges grants nothing.
//  6. No id of an account is given twice, whatever was lost in a restore.
//  7. An operator's call is refused by a failing database, the network and a superseded writer, and by
//     nothing else.
//  8. What operators are told agrees with the ledger, as a history: a change is made once, however often it
//     is asked for, and answered the same each time; a change that is said to be made is there; one that
//     failed is never made later, unless it is asked for again; its key is good for no other change.
//  9. Neither an edge's message nor an operator's change of the ledger waits for the access database. What an
//     operator is told to be done there is done, so that a revoked key stays away from edges; else the answer
//     says that it is pending, and it says so only while that database is in trouble. When it answers again,
//     it gets the keys first that this writer revoked, and becomes what the ledger is.
//  10. A rogue node takes no credit that was not leased to it, and undoes no charge of an edge. Nonsense is
//     refused, and fences its node and no other. What is compensated after a restore that it claimed, it
//     declared.
//  11. Forged replies take no more than they say: an edge charges no more than they granted, and loses no
//     charge unless they ended its epoch. Once the writer answers again, the edge serves, and the books
//     balance.
//  12. Of the reported batches, no more are missing in a restored ledger than bits flipped.
//  13. A second writer that is started by mistake leaves the first alone.
//  14. What a key with monthly credits spent is the sum of its usage; it is refused once it
//     reached them, and not before.
//
// At the end, without faults, everything settles: the usage of an edge is exactly what its
// clients were charged, less what a power cut took before its sync, what flipped bits took, or what was on a
// disk that is gone and is covered by lost; and every account can spend its balance to the last credit.
//
// # What is left to others
//
// Edges have no databases here. Replicas of access and registry beside real edges, which lag, stop or are
// replaced, are in internal/cluster, and the files that an edge reads in host/sqlite.
//
// # Mutants
//
// A directive //mutant:NAME in the code under test marks a statement or expression, and a
// table in this package says how to break it there. Each of these mutants must be found by
// the simulation. A new directive needs an entry in the table, and the reverse; a rename
// needs nothing.
package simulation
