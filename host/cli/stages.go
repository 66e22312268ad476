package cli

import (
	"fmt"
	"io"
	"time"

	"regedge/replicate/registry/push"
)

// lineEvery is how often a line of progress is written without a terminal.
const lineEvery = 5 * time.Second

// slowRecords is how many records take some seconds one by one. From there on, a hint names the faster
// way.
const slowRecords = 50_000

// stages shows the progress of a push: a bar on a terminal, elsewhere a line every lineEvery and at
// the end of each stage.
type stages struct {
	to      io.Writer
	now     func() time.Time
	act     string // name of the last stage
	stage   push.Stage
	bar     *progress // nil before the first stage
	began   time.Time // of the stage
	written time.Time // of the last line
	last    push.Progress
	faster  string // said before many records are written, "" for nothing
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
	if s.bar == nil || s.stage != p.Stage {
		s.finish()
		if s.faster != "" && p.Stage == push.Writing && p.Total >= slowRecords {
			fmt.Fprintf(s.to, "%d records are written one by one. %s\n", p.Total, s.faster)
		}
		s.stage, s.bar, s.began = p.Stage, newProgress(s.to, act, unit), s.now()
	}
	s.last = p
	s.bar.set(p.Done, p.Total)
	if s.bar.bar == nil && s.now().Sub(s.written) >= lineEvery {
		s.line()
	}
}

// failed says that a call of the primary failed, and when the next attempt follows.
func (s *stages) failed(err error, attempt, attempts int, pause time.Duration) {
	if s.bar != nil && s.bar.bar != nil {
		s.finish() // so that the line is not written into the bar
	}
	fmt.Fprintf(s.to, "a call of the primary failed (attempt %d of %d, the next in %v): %s\n", attempt, attempts, pause.Round(time.Second/4), shownLines(err.Error()))
}

// line writes a line with the rate and the time that is left.
func (s *stages) line() {
	act, unit := s.name(s.stage)
	s.written = s.now()
	passed := s.written.Sub(s.began)
	fmt.Fprintf(s.to, "%s: %d of %d %s", act, s.last.Done, s.last.Total, unit)
	if rate := float64(s.last.Done) / passed.Seconds(); passed >= time.Second && s.last.Done > 0 {
		left := time.Duration(float64(s.last.Total-s.last.Done) / rate * float64(time.Second))
		fmt.Fprintf(s.to, ", %.0f a second, %v left", rate, left.Round(time.Second))
	}
	fmt.Fprintln(s.to)
}

// finish ends the stage, if there is one.
func (s *stages) finish() {
	if s.bar == nil {
		return
	}
	s.bar.finish()
	if s.bar.bar == nil && s.last.Done == s.last.Total {
		s.line()
	}
	s.bar = nil
}
