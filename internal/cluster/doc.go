// Package cluster runs a whole cluster on one machine: the primaries, the writer, and edges with
// their replicas, each in a process of its own, with the tokens and mutual TLS that
// docs/operations.md prescribes for many machines.
//
// All connections between the centre and an edge pass through a Gate, which can be shut. The
// tests break one part after another; make cluster runs a cluster to try by hand.
package cluster
