package writer

import (
	"database/sql"
	"log/slog"
	"time"
)

// Config is what a Writer needs. Ledger, Access and OperatorToken must be set.
type Config struct {
	// Ledger and Access are the two databases, local files or remote libSQL. They are
	// migrated by Open and stay their caller's to close.
	Ledger, Access *sql.DB
	// OperatorToken is the bearer token of the operators' API, at least 16 characters.
	OperatorToken string
	// Restored says that the ledger came back from a backup: nothing is granted until
	// every edge that is not retired has re-declared its leases.
	Restored bool
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Random fills p with secure random bytes, crypto/rand when nil.
	Random func(p []byte)
	// Logger takes what an operator should know, nothing when nil.
	Logger *slog.Logger
}
