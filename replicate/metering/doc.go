// Package metering counts lookups and charges them to accounts, at many edges and without a
// round trip to the centre. It holds no code; this comment says in which order to read its
// packages.
//
// The writer at the centre owns every balance. It grants each edge leases: units that the
// edge may spend on its own. The edge spends them, writes each charge to its journal before
// the answer is sent, and reports what it spent. docs/design.md, "Metering" and
// "Guarantees", says what is promised; its "Life of a charge" has the steps below, by number.
//
//	              edge                                  centre
//
//	component ── 1 lookup ──▶ meter ◀──▶ lease         writer ◀──▶ ledger
//	          ◀─ 4 verdict ──   │   2 decide, spend      │    6 apply, grant
//	                            │                        │
//	                 3 record   │      5 usage, wants    │
//	          journal ◀─────────┼───── (syncproto) ─────▶│ 7 commit
//	             │              │                        ▼
//	             ▼              ◀───── 8 rows ────────── database
//	            disk              (acknowledged, granted)
//
// Read them in this order:
//
//   - syncproto: the messages between an edge and the writer, and their binary form.
//   - lease: the edge's decisions, a state machine without clock or I/O.
//   - ledger: the writer's decisions, a state machine of the same kind.
//   - journal: the edge's records on disk, and what survives a crash.
//   - meter: the edge's shell around lease and journal, with clock, network and HTTP.
//   - writer: the centre's shell around ledger, with its database, API and client.
//
// Package bearer checks the tokens of meter and writer. The simulation that runs all of them
// against crashes, lost messages and wrong clocks is in internal/simulation.
package metering
