// Package doctor examines a service of a cluster for regedge doctor: whether all that it is configured
// with exists, is reachable and trusted, how old it is, and when it expires. It changes nothing.
package doctor

import (
	"fmt"
	"time"
)

// Level says how bad a finding is.
type Level string

// The levels of a finding.
const (
	OK    Level = "ok"
	Soon  Level = "soon"  // it works, and will fail or needs a look within days
	Wrong Level = "wrong" // it does not work, or will not within a week
)

// Finding is the result of one check.
type Finding struct {
	Service string `json:"service"` // edge, writer, primary, replica, client
	What    string `json:"what"`    // the part of it, such as "token of the registry"
	Level   Level  `json:"level"`
	Found   string `json:"found"`
	Do      string `json:"do,omitempty"` // what to do about it; empty when it is fine
}

// Exam collects the findings about one service.
type Exam struct {
	Service string
	// Now is this machine's clock, by which ages and ends are judged.
	Now func() time.Time
	// Timeout is how long an answer may take.
	Timeout time.Duration

	Findings []Finding
}

func (e *Exam) add(level Level, what, found, do string) {
	e.Findings = append(e.Findings, Finding{e.Service, what, level, found, do})
}

// OK notes that something is fine.
func (e *Exam) OK(what, format string, args ...any) {
	e.add(OK, what, fmt.Sprintf(format, args...), "")
}

// Soon notes something that works and needs a look; do says what to do.
func (e *Exam) Soon(what, do, format string, args ...any) {
	e.add(Soon, what, fmt.Sprintf(format, args...), do)
}

// Wrong notes something that does not work; do says what to do.
func (e *Exam) Wrong(what, do, format string, args ...any) {
	e.add(Wrong, what, fmt.Sprintf(format, args...), do)
}

// CountWrong returns how many findings are Wrong.
func CountWrong(findings []Finding) (wrong int) {
	for _, f := range findings {
		if f.Level == Wrong {
			wrong++
		}
	}
	return wrong
}

// How long before an expiry it becomes a finding: as for the alarms.
const (
	endsSoon = 30 * 24 * time.Hour
	endsNow  = 7 * 24 * time.Hour
)

// end notes when something expires: within now it is Wrong, within soon it is Soon.
func (e *Exam) end(what string, ends time.Time, soon, now time.Duration, do string) {
	left := ends.Sub(e.Now())
	switch at := ends.UTC().Format(time.RFC3339); {
	case left <= 0:
		e.Wrong(what, do, "it ended at %s, %s ago", at, days(-left))
	case left < now:
		e.Wrong(what, do, "it ends at %s, in %s", at, days(left))
	case left < soon:
		e.Soon(what, do, "it ends at %s, in %s", at, days(left))
	default:
		e.OK(what, "it ends at %s, in %s", at, days(left))
	}
}

// days is a duration for people: in days from two on, else as Go prints it, in seconds.
func days(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
	}
	return d.Round(time.Second).String()
}

// inUnits is a size for people.
func inUnits(n uint64) string {
	units := []string{"bytes", "KB", "MB", "GB", "TB"}
	value, unit := float64(n), 0
	for value >= 1000 && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d %s", n, units[0])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
