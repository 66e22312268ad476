// Package sqld runs libSQL servers (sqld) as child processes: for regedge primary and regedge
// replica, and for clusters on one machine in tests. A server does not outlive the process that started
// it; one that did is ended before another is started in its directory. It lets nothing but replication
// reach a primary from its replicas, and restarts a replica that has lost its database.
package sqld
