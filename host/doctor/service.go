package doctor

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"time"

	"regedge/replicate/metering/ledger"
	"regedge/schema"
)

// Answers asks a libSQL server, by its address or URL, whether it answers at all.
func (e *Exam) Answers(ctx context.Context, what, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		u = &url.URL{Scheme: "http", Host: Dialable(address)}
	}
	if !e.connects(ctx, what, hostPort(u)) {
		return
	}
	a, err := e.ask(ctx, http.MethodGet, u.Scheme+"://"+u.Host+"/health", "", true)
	if err != nil {
		e.silent(what, u.Host, err)
		return
	}
	e.OK(what, "%s answers in %v", u.Host, a.took.Round(100*time.Microsecond))
}

// Ledger checks which process holds the ledger, and whether it is alive.
func (e *Exam) Ledger(ctx context.Context, file string) {
	const what = "ledger"
	db, err := schema.OpenReadOnly(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Wrong(what, "a new writer makes it; if there was one, restore its backup (docs/operations.md, \"Backup and restore\")", "%s is not there", file)
		return
	case err != nil:
		e.Wrong(what, "run this as root, or as the user of the writer; if it is damaged, restore its backup (docs/operations.md, \"Backup and restore\")", "%v", err)
		return
	}
	defer db.Close()
	limited, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	holder, err := ledger.ReadHolder(limited, db)
	if err != nil {
		e.Wrong(what, "is it the ledger? If it is damaged, restore its backup (docs/operations.md, \"Backup and restore\")", "%v", err)
		return
	}
	const do = "does that process still run? Its log and the ledger's disk say more (dmesg, iostat); a new writer takes the ledger after 3 s"
	heard := e.Now().Sub(time.UnixMilli(holder.Heard)).Round(time.Second)
	switch {
	case holder.PID == 0:
		e.Wrong(what, "start the writer", "no writer holds it: the last one has ended in order")
	case heard < -lagging && !isHeard(ctx, db, holder):
		e.Wrong(what, do, "process %d at %s holds it, and is not heard: its last sign of life is of %s, by a clock that was ahead", holder.PID, holder.Host, time.UnixMilli(holder.Heard).UTC().Format(time.RFC3339))
	case heard > lagging:
		e.Wrong(what, do, "process %d at %s holds it, and was last heard %s ago", holder.PID, holder.Host, days(heard))
	default:
		e.OK(what, "process %d at %s holds it, since %s", holder.PID, holder.Host, time.UnixMilli(holder.Since).UTC().Format(time.RFC3339))
	}
}

const (
	// heardWithin is how long a writer may be silent: it gives a sign of life each second. A new writer waits as long.
	heardWithin = 3 * time.Second
	// heardPause is the time between two checks.
	heardPause = 200 * time.Millisecond
)

// isHeard watches for a sign of life from a ledger's holder: any change of its row. The times in that row only grow, so
// once the holder's clock was ahead, a time by itself says nothing.
func isHeard(ctx context.Context, db *sql.DB, before ledger.Holder) bool {
	ctx, cancel := context.WithTimeout(ctx, heardWithin)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(heardPause):
		}
		if now, err := ledger.ReadHolder(ctx, db); err == nil && now != before {
			return true
		}
	}
}

// backupOld is the age at which a daily backup is reported, as for the alarm RegedgeBackupOld.
const backupOld = 26 * time.Hour

// backupAhead is how far the clock of whoever wrote the file may be ahead of this one.
const backupAhead = time.Minute

// Backup checks the age of the ledger's last backup, and whether it was written to its end.
func (e *Exam) Backup(file string) {
	info, err := os.Stat(file)
	if err != nil {
		e.Wrong("backup", "run the job that makes it, and see why it did not", "%v", err)
		return
	}
	if err := schema.CutShort(file); err != nil {
		e.Wrong("backup", "is its disk full (df)? Run the job that makes it", "%s is no whole backup: %v", file, err)
		return
	}
	switch age := e.Now().Sub(info.ModTime()); {
	case age > backupOld:
		e.Wrong("backup", "run the job that makes it, and see why it did not", "%s is %s old", file, days(age))
	case age < -backupAhead:
		e.Wrong("backup", "set the clock, and run the job that makes it: how old this one is can't be told", "%s is of %s, which is to come", file, info.ModTime().UTC().Format(time.RFC3339))
	default:
		e.OK("backup", "%s is %s old, and has %s", file, days(max(age, 0)), inUnits(uint64(info.Size())))
	}
}

// tokenLeft is a line of an edge's metrics.
var tokenLeft = regexp.MustCompile(`^regedge_read_token_ends_seconds\{database="(\w+)"\} (\S+)$`)

// TokensLeft reads from the metrics of a running edge of this machine how long its tokens are still
// valid, by database: the writer may have renewed them. It is empty without metrics.
func (e *Exam) TokensLeft(ctx context.Context, metrics string) map[string]time.Duration {
	left := map[string]time.Duration{}
	if metrics == "" {
		return left
	}
	a, err := e.ask(ctx, http.MethodGet, "http://"+Dialable(metrics)+"/metrics", "", true)
	if err != nil {
		return left
	}
	for lines := bufio.NewScanner(bytes.NewReader(a.body)); lines.Scan(); {
		if found := tokenLeft.FindStringSubmatch(lines.Text()); found != nil {
			if seconds, err := strconv.ParseFloat(found[2], 64); err == nil {
				left[found[1]] = time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return left
}
