// Package chaos runs a writer and three edges as processes of their own, asks them as
// clients do, and ends them with kill -9 at moments of chance, fills their disks, locks
// and damages the ledger, and stands between them on the network.
//
// At the end of each test the credits that the ledger counts as spent are the answers
// 200 that clients received. A request that was cut off before its answer arrived may be
// charged, and is counted apart.
package chaos
