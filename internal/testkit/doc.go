// Package testkit runs the child processes of tests and benchmarks and keeps what they log.
//
// Its subpackages do the same for what needs more: sqldtest runs libSQL servers, browser drives
// Chromium, searchtest builds databases to search in. Nothing of the product imports this package or those.
package testkit
