// Package sqld runs libSQL servers (sqld) as child processes and restarts a replica that has lost
// its database: for regedge replica at an edge, and for clusters on one machine in tests. In
// production an init system runs the primaries (docs/operations.md, "The centre").
package sqld
