// Package chaos runs a writer and edges as processes, sends them requests as clients do, kills
// them at random times, fills their disks, locks and damages the ledger, and delays and
// garbles their network.
//
// At the end of each test the credits that the ledger counts as spent must be the 200
// responses that clients received. A request that was cut off may have been charged, and is
// counted separately. TestHistory judges each answer at its time, by package history.
package chaos
