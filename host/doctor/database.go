package doctor

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"regedge/host/pki"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// Server is a database on a libSQL server.
type Server struct {
	Database schema.Database
	Address  string
	Token    string
	// MaxAge is the maximum age of the newest heartbeat; 0 means that it is not checked.
	MaxAge time.Duration
}

const (
	selectBeat    = "SELECT coalesce(max(beat), 0) FROM heartbeat"
	selectRelease = "SELECT id FROM release ORDER BY seq DESC LIMIT 1"
)

// lagging is the age from which a copy is reported: heartbeats come every second.
const lagging = 10 * time.Second

// LibSQL asks a libSQL server with its token: how old its newest heartbeat is, and which release it has.
func (e *Exam) LibSQL(ctx context.Context, s Server) {
	what := string(s.Database)
	u, err := url.Parse(s.Address)
	if err != nil || u.Hostname() == "" {
		e.Wrong(what, "it is a URL, such as http://127.0.0.1:8281", "%q is not the address of a libSQL server", s.Address)
		return
	}
	if !proxied(u) && !e.connects(ctx, what, hostPort(u)) {
		return
	}
	db, err := libsql.Open(s.Address, s.Token)
	if err != nil {
		e.Wrong(what, "check the address", "%v", err)
		return
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	e.contents(ctx, db, s, s.Address)
}

// File examines a database file, of a replica or local, while its owner runs.
func (e *Exam) File(ctx context.Context, database schema.Database, path string, maxAge time.Duration) {
	what := string(database) + " file"
	db, err := schema.OpenReadOnly(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Wrong(what, "a replica makes it once it reaches its primary: look at the replica's log", "%s is not there", path)
		return
	case errors.Is(err, fs.ErrPermission):
		e.Wrong(what, "run this as root, or as the user of the service", "%s can't be read: %v", path, err)
		return
	case err != nil:
		e.Wrong(what, "if it is damaged: stop its replica, delete the replica's directory, start it", "%v", err)
		return
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	e.contents(ctx, db, Server{Database: database, MaxAge: maxAge}, path)
}

// contents notes the age and the release of an open database, and whether it is the expected one. place is its file or
// address.
func (e *Exam) contents(ctx context.Context, db *sql.DB, s Server, place string) {
	what := string(s.Database)
	var other *schema.OtherError
	if _, err := schema.Version(ctx, db, s.Database); errors.As(err, &other) && other.Found != "" {
		e.Wrong(what, "is the address or the directory of another database given here, or does its replica follow another primary? If a primary itself holds the wrong one: start an empty one (docs/operations.md, \"Backup and restore\")", "%s: %v", place, err)
		return
	}
	release := ""
	if s.Database == schema.Registry {
		err := db.QueryRowContext(ctx, selectRelease).Scan(&release)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			e.queryFailed(what, s, place, err)
			return
		}
		if err != nil {
			e.Wrong(what, "regedge push FILE, at the centre; a new replica has one when its first copy is complete", "%s has no release yet", place)
			return
		}
		release = ", and has release " + release
	}
	var beat int64
	err := db.QueryRowContext(ctx, selectBeat).Scan(&beat)
	switch {
	case err != nil:
		e.queryFailed(what, s, place, err)
	case s.MaxAge == 0:
		e.OK(what, "%s can be read%s", place, release)
	case beat == 0:
		e.Wrong(what, "does the writer have --registry and --access, and tokens that may write?", "%s has no heartbeat, so that its age is unknown", place)
	default:
		e.age(what, place, release, e.Now().Sub(time.UnixMilli(beat)), s.MaxAge)
	}
}

// age judges the age of a copy.
func (e *Exam) age(what, place, release string, age, limit time.Duration) {
	shown := age.Round(100 * time.Millisecond)
	const do = "all edges at once: is the writer up (it writes the heartbeat), are the primaries? One: its network, and the log of its regedge-replica@"
	switch {
	case age < -maxSkew:
		e.Wrong(what, "compare date -u here and at the writer, and mend NTP on the machine that is wrong", "its heartbeat is %v ahead of this machine's clock, so that its age is unknown (%s)", -shown, place)
	case age > limit:
		e.Wrong(what, do+what, "it is %v behind, more than the %v that it may be (%s%s)", shown, limit, place, release)
	case age > lagging:
		e.Soon(what, do+what, "it is %v behind (%s%s)", shown, place, release)
	default:
		e.OK(what, "%s is %v behind%s", place, max(shown, 0), release)
	}
}

// queryFailed notes why a statement failed.
func (e *Exam) queryFailed(what string, s Server, place string, err error) {
	text := err.Error()
	switch err := libsql.Explain(err); {
	case errors.Is(err, libsql.ErrForwarded):
		e.Wrong(what, "is the first copy under way? Look at the log of its replica, and whether that reaches its primary", "%s has no copy of it yet", place)
	case errors.Is(err, libsql.ErrUnauthorized):
		e.refused(what, s, place)
	case strings.Contains(text, "no such table"):
		e.Wrong(what, fmt.Sprintf("%s: regedge push fills the registry, the writer fills access; at an edge, is the first copy under way?", what), "%s is empty", place)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		e.silent(what, place, err)
	case isTimeout(err) || errors.Is(err, context.DeadlineExceeded):
		e.Wrong(what, "it hangs: look at its log and its disk", "%s does not answer within %v", place, e.Timeout)
	default:
		e.Wrong(what, "look at its log", "%s: %v", place, err)
	}
}

// refused notes that a libSQL server refuses the token, and the reason if the token itself shows it.
func (e *Exam) refused(what string, s Server, place string) {
	do := "make one with the keys of this cluster, at the centre: regedge trust token " + string(s.Database) + " (--read-only for an edge)"
	ends, has := pki.Ends(s.Token)
	switch {
	case s.Token == "":
		e.Wrong(what, do, "%s asks for a token, and there is none", place)
	case has && ends.Before(e.Now()):
		e.Wrong(what, do, "%s refuses the token, which ended at %s", place, ends.Format(time.RFC3339))
	default:
		e.Wrong(what, do, "%s refuses the token: it is of another cluster, of the other database, or may not do this", place)
	}
}

// How long before its expiry a database token becomes a finding. An edge's lives for 30 days and is
// renewed twice a day.
const (
	tokenSoon = 10 * 24 * time.Hour
	tokenNow  = 3 * 24 * time.Hour
	doRenew   = "is the timer at the centre running (systemctl list-timers regedge-renew.timer), and its operators' token good? By hand: regedge trust token --read-only"
)

// Token notes when a token for a database expires.
func (e *Exam) Token(database schema.Database, token string) {
	what := "token of " + string(database)
	if ends, has := pki.Ends(token); has {
		e.end(what, ends, tokenSoon, tokenNow, doRenew)
	} else if token != "" {
		e.OK(what, "it does not end")
	}
}

// Renewed notes when the renewed token of a running edge expires, which is in left. It returns whether the token that
// the edge was started with is still valid.
func (e *Exam) Renewed(database schema.Database, started string, left time.Duration) (good bool) {
	what := "token of " + string(database)
	e.end(what+" in use", e.Now().Add(left), tokenSoon, tokenNow, doRenew)
	ends, has := pki.Ends(started)
	if !has || ends.After(e.Now()) {
		return true
	}
	e.Soon(what, "put a new one into edge.env (regedge trust token --read-only, at the centre), or let the edge reach the writer after a restart",
		"the one that the edge was started with ended at %s; it uses a newer one of the writer's", ends.Format(time.RFC3339))
	return false
}

// Size notes the sizes of a database's files.
func (e *Exam) Size(what, file string) {
	info, err := os.Stat(file)
	if err != nil {
		return
	}
	text := inUnits(uint64(info.Size()))
	if wal, err := os.Stat(file + "-wal"); err == nil {
		text += fmt.Sprintf(", and a write-ahead log of %s", inUnits(uint64(wal.Size())))
		if wal.Size() > largeLog {
			e.Soon(what, "something reads it for long and keeps it from being emptied: a backup that hangs, a sqlite3 that was left open", "%s has %s", file, text)
			return
		}
	}
	e.OK(what, "%s has %s", file, text)
}

// largeLog is the size of a write-ahead log that is reported, in bytes, as for the alarm
// RegedgeLedgerLogLarge.
const largeLog = 256 << 20
