package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// lineEvery is how often a line of progress is written without a terminal.
const lineEvery = 5 * time.Second

// progress shows how far a long task is: a bar on a terminal, elsewhere a line every lineEvery.
type progress struct {
	to          io.Writer
	now         func() time.Time
	act, unit   string
	bar         *progressbar.ProgressBar // nil without a terminal
	began       time.Time
	written     time.Time // when the last line was; the beginning before the first
	done, total int64
}

// newProgress begins a task. What is counted in "B" is bytes.
func newProgress(to io.Writer, now func() time.Time, act, unit string) *progress {
	p := &progress{to: to, now: now, act: act, unit: unit, began: now()}
	p.written = p.began
	if !isTerminal(to) {
		return p
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(to), progressbar.OptionSetDescription(act),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetWidth(30),
	}
	if unit == "B" {
		options = append(options, progressbar.OptionShowBytes(true))
	} else {
		options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit))
	}
	p.bar = progressbar.NewOptions64(-1, options...)
	return p
}

// set shows the progress. The total is 0 while it is unknown. Errors are ignored: all of it is only for the eye.
func (p *progress) set(done, total int64) {
	p.done, p.total = done, total
	if p.bar == nil {
		if p.now().Sub(p.written) >= lineEvery {
			p.line()
		}
		return
	}
	if total > 0 && p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(done)
}

// line writes a line with the rate and the time that is left.
func (p *progress) line() {
	p.written = p.now()
	passed := p.written.Sub(p.began)
	done, total, unit := p.done, p.total, p.unit
	if unit == "B" && max(done, total) >= 10_000_000 {
		done, total, unit = done/1_000_000, total/1_000_000, "MB"
	}
	fmt.Fprintf(p.to, "%s: %d", p.act, done)
	if p.total > 0 {
		fmt.Fprintf(p.to, " of %d", total)
	}
	fmt.Fprint(p.to, " ", unit)
	if rate := float64(p.done) / passed.Seconds(); passed >= time.Second && rate >= 1 {
		fmt.Fprintf(p.to, ", %.0f a second", float64(done)/passed.Seconds())
		if p.total > 0 {
			left := time.Duration(float64(p.total-p.done) / rate * float64(time.Second))
			fmt.Fprintf(p.to, ", %v left", left.Round(time.Second))
		}
	}
	fmt.Fprintln(p.to)
}

// finish removes the bar.
func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
