// Package cluster runs a whole cluster on one machine, on the loopback: the primaries,
// the writer, and edges with their replicas, each a process of its own, with tokens and
// mutual TLS as docs/operations.md has them on many machines. make cluster runs it for a
// person, and the tests break its parts.
//
// Between the centre and each edge stands a Gate, which can be shut as a network is cut.
package cluster
