package simulation

import (
	"fmt"
	"strings"
)

// fault is a kind of failure, or of an operator's action in between.
type fault int

const (
	requestLost fault = iota
	answerLost
	repeated
	delayed
	overtaken
	timedOut
	lateMessage
	staleReply
	replayedReply
	partitioned
	edgeCrash
	crashAtWrite
	tornWrite
	tornPut
	powerCut
	powerCutLost
	diskFull
	syncError
	syncHangs
	diskWriteHangs
	bitsFlipped
	recordsLost
	archiveFlipped
	wiped
	wipedAndRetired
	snapshotRestored
	diskSwapped
	backAfterDays
	retiredAlive
	clockSkew
	clockJump
	writerClockJump
	daysPass
	writerRestart
	writerCrashAtWrite
	statementFails
	commitLost
	commitAnswerLost
	secondWriter
	writerIntruded
	ledgerRestored
	ledgerRestoredSilently
	recallStorm
	topUp
	adjustment
	changeLost
	changeAnswerLost
	changeRepeated
	keyReused
	keyAdded
	keyRevoked
	keyLimited
	limitsSettled
	ledgerHangs
	accessHangs
	rowRefused
	rowOfLedgerRefused
	changePending
	planChange
	suspension
	oldEpochsRetired
	voided
	askedAgain
	retried
	rogueMessages
	rogueFenced
	rogueClaims
	forgedReply
	faults
)

var faultNames = [faults]string{
	"request lost", "answer lost", "message repeated", "message delayed", "message overtaken", "answer too late", "late message",
	"stale reply", "stale reply as an answer", "partition", "edge crash", "edge crash at a write", "torn write", "torn copy into memory", "power cut",
	"power cut that lost writes", "disk full", "sync error", "sync hangs", "write to the disk hangs", "bits flipped", "records lost by flipped bits", "bits flipped in reported batches", "disk wiped", "disk wiped, node retired",
	"snapshot restored", "disk swapped", "edge back after days", "living node retired", "clock skew", "clock jump", "jump of the writer's clock", "days pass",
	"writer restart", "writer crash at a write", "statement fails", "commit lost", "commit's answer lost",
	"second writer", "second writer by mistake", "ledger restored", "ledger restored silently", "recall storm", "top-up", "negative adjustment",
	"operator's request lost", "operator's answer lost", "change asked for again", "key used for another change", "API key added", "API key revoked", "key limited", "limits of keys settled",
	"ledger hangs", "access database hangs", "access database refuses a row", "ledger refuses a row", "change pending at the access database",
	"plan change", "suspension", "old epochs retired", "charge voided", "id asked again", "retry under its key", "message of a rogue node", "rogue node fenced", "restore claimed by a rogue node",
	"forged reply",
}

// summary counts what happened in runs.
type summary struct {
	seeds, steps, charges int64
	batchesLost           int64 // that were reported, by flipped bits, and that a restored ledger lacked
	faults                [faults]int64
}

func (s *summary) add(o *summary) {
	s.seeds += o.seeds
	s.steps += o.steps
	s.charges += o.charges
	s.batchesLost += o.batchesLost
	for i, n := range o.faults {
		s.faults[i] += n
	}
}

func (s *summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %d steps, %d charges, %d reported batches lost", s.seeds, s.steps, s.charges, s.batchesLost)
	for i, n := range s.faults {
		fmt.Fprintf(&b, "\n%9d  %s", n, faultNames[i])
	}
	return b.String()
}

// least is the fault that occurred least.
func (s *summary) least() (string, int64) {
	at := 0
	for i, n := range s.faults {
		if n < s.faults[at] {
			at = i
		}
	}
	return faultNames[at], s.faults[at]
}
