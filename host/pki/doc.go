// Package pki makes the keys, tokens and certificates by which the machines of a cluster
// authenticate: for each database a key pair whose tokens its primary accepts, another whose tokens its
// replicas accept, and a certificate authority for the replication between them.
//
// The folder stays at the centre, readable for the operator alone: its keys can sign a
// token that writes. An edge gets a read-only token and a certificate of its own.
package pki
