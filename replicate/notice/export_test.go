package notice

import "context"

// What tests see beside the package's own.
const (
	EndsSoon   = endsSoon
	Kept       = kept
	MaxWaiting = maxWaiting
	MaxStored  = maxStored
	TestsKept  = testsKept
	AtOnce     = atOnce
)

// Queries are those that run again and again, with the number of their parameters.
var Queries = map[string]int{selectBalances: 4, selectCapped: 5, selectEnding: 4, selectSpent: 3, selectDue: 5, selectExpired: 1}

// PauseAfter is the pause after so many failed attempts.
var PauseAfter = pauseAfter

// NoteDelivered stores that a notice was delivered.
func NoteDelivered(ctx context.Context, s *Sender, w Way) error {
	return s.note(ctx, w, &round{tried: []Notice{{}}, outcomes: []Outcome{{State: Delivered}}})
}
