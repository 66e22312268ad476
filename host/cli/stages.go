package cli

import (
	"fmt"
	"io"
	"time"

	"regedge/replicate/registry/push"
)

// slowRecords is how many records take some seconds one by one. From there on, a hint names the faster
// way.
const slowRecords = 50_000

// stages shows the progress of a push: a bar for each stage on a terminal, elsewhere a line at once, every lineEvery and
// at the end of each stage.
type stages struct {
	to      io.Writer
	now     func() time.Time
	act     string // name of the last stage
	stage   push.Stage
	shown   *progress // nil between stages
	written time.Time // of the last line of the stages before
	faster  string    // said before many records are written, "" for nothing
}

func newStages(to io.Writer, now func() time.Time, act string) *stages {
	return &stages{to: to, now: now, act: act}
}

// name returns what a stage does, and its unit.
func (s *stages) name(stage push.Stage) (act, unit string) {
	switch stage {
	case push.Hashing:
		return "hashing the records", "records"
	case push.Copying:
		return "copying the file", "pages"
	case push.Comparing:
		return "comparing with the primary", "parts"
	case push.HandingOver:
		return "handing the file over", "B"
	}
	return s.act, "records"
}

// set shows the progress of a stage.
func (s *stages) set(p push.Progress) {
	if p.Stage == push.Waiting {
		s.finish()
		fmt.Fprintln(s.to, "waiting for another push, which makes its snapshot in --releases")
		return
	}
	act, unit := s.name(p.Stage)
	if s.shown == nil || s.stage != p.Stage {
		s.finish()
		if s.faster != "" && p.Stage == push.Writing && p.Total >= slowRecords {
			fmt.Fprintf(s.to, "%d records are written one by one. %s\n", p.Total, s.faster)
		}
		s.stage, s.shown = p.Stage, newProgress(s.to, s.now, act, unit)
		s.shown.written = s.written
	}
	s.shown.set(p.Done, p.Total)
}

// failed says that a call of the primary failed, and when the next attempt follows.
func (s *stages) failed(err error, attempt, attempts int, pause time.Duration) {
	if s.shown != nil && s.shown.bar != nil {
		s.finish() // so that the line is not written into the bar
	}
	fmt.Fprintf(s.to, "a call of the primary failed (attempt %d of %d, the next in %v): %s\n", attempt, attempts, pause.Round(time.Second/4), shownLines(err.Error()))
}

// finish ends the stage, if there is one.
func (s *stages) finish() {
	if s.shown == nil {
		return
	}
	s.shown.finish()
	if s.shown.bar == nil && s.shown.done == s.shown.total {
		s.shown.line()
	}
	s.written, s.shown = s.shown.written, nil
}
