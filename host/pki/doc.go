// Package pki makes what the machines of a cluster know one another by: for each
// database a key pair whose tokens its libSQL servers accept, and a certificate
// authority for the replication between them.
//
// The folder of the trust stays at the centre, with whoever operates the service: who
// holds it can make a token that writes. An edge gets a token that may only read, and a
// certificate of its own.
package pki
