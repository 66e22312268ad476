// Package simulation runs a writer and several edges, as they are in production, under a
// clock, a network and disks that follow one seed: the same seed makes the same run.
//
// The parts under test are whole: writer.Writer with its API, its group commit and its
// SQL ledger (SQLite in memory), and meter.Meter with its journal, its leases and its
// sync messages. Only what they stand on is simulated:
//
//   - the network loses, repeats, delays and reorders messages and loses answers. A
//     message under way lets the rest of the world go on, the same edge included;
//   - an edge's disk is full, fails to sync, is cut in the middle of a write by the end
//     of the process, loses what was not synced with the power, is wiped, swapped, or
//     replaced by an older copy;
//   - the ledger's database fails at any statement, commits without an answer, ends
//     with its writer, or comes back from a backup;
//   - every clock is wrong by up to 30 s, and days pass.
//
// # What is held
//
// After every step, by a checker that reads the database and counts the answers that
// clients got, and shares no code with the ledger:
//
//  1. spent ≤ bought + compensated, and what clients got ≤ the same (G1).
//  2. bought + compensated = left + leased + spent + lost, none of them negative; leased
//     and lost are the sums over the leases, spent over the usage (G3).
//  3. No edge's usage exceeds the answers with which its clients were charged (G2): a
//     request whose answer was cut off counts as one that may have been.
//  4. A 402 is said only of an account of which nothing was left or leased elsewhere
//     within the last eleven seconds by the edge's clock (G5, G6).
//  5. A ledger that waits for its edges grants nothing.
//  6. An operator's act is refused by a database that fails and a writer that was
//     superseded, and by nothing else.
//
// At the end, with everything healed, all settles: the usage of an edge is exactly what
// its clients were charged, less what a power cut took before its sync, or what was on
// a disk that is gone and is covered by lost; and every account can spend its balance
// to the last credit.
package simulation
