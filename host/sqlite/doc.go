// Package sqlite answers read-only statements on an SQLite file: the file of a local
// database, or the one that a libSQL replica keeps. It holds a small pool of
// connections, each with its statements prepared, and it never writes, never
// checkpoints and never creates the file, so that it can read beside the process that
// owns it. A large file is read through a mapping.
//
// A statement can do nothing but read: the file is opened read-only, and an authorizer
// refuses everything but SELECT, so a component that is handed a Store cannot attach
// another file or change a setting. Every statement is bounded in time, rows and bytes.
package sqlite
