// Package testkit has what tests and benchmarks of several packages use: child processes and what they log,
// ports, scripts of a fuzzer's choices, processor time.
//
// Its subpackages have what needs more: sqldtest runs libSQL servers, browser drives
// Chromium, searchtest builds databases to search in. Nothing of the product imports this package or those.
package testkit
