package sqld_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

func TestAwaitFailsWhenAnAddressIsInUse(t *testing.T) {
	for _, taken := range []string{"HTTP", "GRPC"} {
		t.Run(taken, func(t *testing.T) {
			other, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer other.Close()
			config := sqld.Config{Program: sqldtest.Program(t), Dir: filepath.Join(t.TempDir(), "data"), HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t)}
			if taken == "HTTP" {
				config.HTTP = other.Addr().String()
			} else {
				config.GRPC = other.Addr().String()
			}
			server := &sqld.Server{Config: config}
			require.NoError(t, server.Start())
			defer server.Kill()
			require.ErrorIs(t, server.Await(t.Context(), ""), sqld.ErrEnded)
		})
	}
}

func TestAReplicaDoesNotStartOnAPrimarysDatabase(t *testing.T) {
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)")
	other := sqldtest.Primary(t)
	primary.Stop()
	config := primary.Config
	config.Primary = "http://" + other.GRPC
	require.ErrorContains(t, (&sqld.Server{Config: config}).Start(), "holds a primary's database")
	require.NoError(t, primary.Start())
	sqldtest.Await(t, primary, "")
	sqldtest.Exec(t, primary, "INSERT INTO probe VALUES (1)")
}

func TestAReplicaLogsThatItRemovesAPartialDatabase(t *testing.T) {
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (1)")
	const message = "it is removed, and copied anew"
	log := &testkit.Log{}
	replica := sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t), Primary: "http://" + primary.GRPC, Log: log})
	follows(t, replica, 1)
	replica.Stop()
	require.NoError(t, replica.Start())
	follows(t, replica, 1)
	require.NotContains(t, log.String(), message, "a complete database is kept")
	replica.Kill()
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(sqld.File(replica.Dir)), "client_wal_index")))
	require.NoError(t, replica.Start())
	follows(t, replica, 1)
	require.Contains(t, log.String(), message)
}

// TestAReplicaSaysWhyItsPrimaryIsNotReached, once.
func TestAReplicaSaysWhyItsPrimaryIsNotReached(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	server := &sqld.Server{Config: sqld.Config{
		Program: sqldtest.Program(t), Dir: filepath.Join(t.TempDir(), "data"), HTTP: testkit.FreePort(t),
		Primary: "http://" + testkit.FreePort(t), Relay: true, Log: log,
	}}
	require.NoError(t, server.Start())
	defer server.Kill()
	// It connects once it is asked, and tries again each second.
	db := sqldtest.Open(t, server)
	ask := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = db.ExecContext(ctx, "SELECT 1")
	}
	const message = "the primary is not reached: dial tcp"
	require.Eventually(t, func() bool { ask(); return strings.Contains(log.String(), message) }, patience, 50*time.Millisecond)
	for range 3 {
		ask()
	}
	require.Equal(t, 1, strings.Count(log.String(), message))
	require.Contains(t, log.String(), "connection refused")
}

const patience = time.Minute

func TestAReplicaThatLostItsDatabaseIsRestarted(t *testing.T) {
	t.Parallel()
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (1)")
	log := &testkit.Log{}
	replica := sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t), Primary: "http://" + primary.GRPC, Log: log})
	sqldtest.LoseDatabase(t, primary, "", replica.Dir, log)
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "regedge: the replica has lost its database, and is started again")
	}, patience, 50*time.Millisecond, log.String())

	sqldtest.Exec(t, primary, "UPDATE probe SET n = 2")
	follows(t, replica, 2)
}

// follows waits until the number in the table probe at a replica is want.
func follows(t *testing.T, replica *sqld.Server, want int64) {
	t.Helper()
	db := sqldtest.Open(t, replica)
	db.SetMaxIdleConns(-1) // on one that is kept, sqld waits for the frame that an answer before came from, see asOfNow
	require.Eventually(t, func() bool {
		var n int64
		return db.QueryRowContext(t.Context(), "SELECT n FROM probe").Scan(&n) == nil && n == want
	}, patience, 50*time.Millisecond, "it follows")
}

// TestASeedIsTakenAtTheNextStart: a primary that was stopped, or killed while it took a seed, goes on.
func TestASeedIsTakenAtTheNextStart(t *testing.T) {
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)")
	replica := sqldtest.Replica(t, primary)
	primary.Stop()
	require.NoError(t, os.MkdirAll(filepath.Dir(sqld.SeedFile(primary.Dir)), 0o700))
	made, err := sqlite3.Open(sqld.SeedFile(primary.Dir))
	require.NoError(t, err)
	require.NoError(t, made.Exec("PRAGMA journal_mode = wal; CREATE TABLE probe (n INTEGER); INSERT INTO probe VALUES (7)"))
	require.NoError(t, made.Close())
	require.NoError(t, primary.Start())
	sqldtest.Await(t, primary, "")
	for _, server := range []*sqld.Server{primary, replica} {
		require.Eventually(t, func() bool {
			var n int
			return sqldtest.Open(t, server).QueryRow("SELECT n FROM probe").Scan(&n) == nil && n == 7
		}, 30*time.Second, 50*time.Millisecond)
	}
	require.NoFileExists(t, sqld.SeedFile(primary.Dir))
}

// TestAnOverwrittenReplicaIsCopiedAnew: without a part of its file, sqld answers that it is malformed for
// ever, and without all of it for many seconds.
func TestAnOverwrittenReplicaIsCopiedAnew(t *testing.T) {
	for name, harm := range map[string]func(file *os.File, size int64) error{
		"a part": func(file *os.File, size int64) error {
			_, err := file.WriteAt(bytes.Repeat([]byte{0xa5}, int(size/2)), size/4)
			return err
		},
		"all of it": func(file *os.File, size int64) error { _, err := file.WriteAt(make([]byte, size), 0); return err },
		"cut off":   func(file *os.File, _ int64) error { return file.Truncate(0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			primary := sqldtest.Primary(t)
			sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER, pad TEXT)",
				"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) INSERT INTO probe SELECT n, hex(randomblob(200)) FROM c")
			keyFile, token, err := pki.ReadLink(filepath.Join(dir, "link"), time.Now)
			require.NoError(t, err)
			log := &testkit.Log{}
			replica := sqldtest.Start(t, sqld.Config{
				HTTP: testkit.FreePort(t), Dir: filepath.Join(dir, "replica"), Primary: "http://" + primary.GRPC, Log: log,
				Reads: &sqld.Reads{KeyFile: keyFile, Token: token, Admit: func(string) bool { return true }},
			})
			db := sqldtest.Open(t, replica)
			const all = "SELECT count(*), coalesce(sum(length(pad)), 0) FROM probe"
			whole := func(rows int) bool {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // it reads 8 MB
				defer cancel()
				var count, size int
				return db.QueryRowContext(ctx, all).Scan(&count, &size) == nil && count == rows && size >= 20000*400
			}
			require.Eventually(t, func() bool { return whole(20000) }, time.Minute, 20*time.Millisecond)
			noticed := regexp.MustCompile("copied anew|reseting  replica") // by this package, or by sqld itself
			rounds := 1
			if name == "a part" {
				rounds = 2 // again before a copy may begin
			}
			for round := range rounds {
				// Until then sqld forwards statements to the primary, and it still writes pages to the file, which
				// would mend it.
				require.Eventually(t, func() bool {
					info, err := os.Stat(sqld.File(replica.Dir))
					return err == nil && info.Size() > 8<<20
				}, time.Minute, 20*time.Millisecond)
				before := len(log.String())
				harmAll := func() error {
					for _, suffix := range []string{"", "-wal"} {
						file, err := os.OpenFile(sqld.File(replica.Dir)+suffix, os.O_RDWR, 0)
						if suffix != "" && errors.Is(err, fs.ErrNotExist) {
							continue // all of it is in the file
						}
						if err != nil {
							return err
						}
						info, err := file.Stat()
						if err == nil {
							err = harm(file, info.Size())
						}
						if err = errors.Join(err, file.Close()); err != nil {
							return err
						}
					}
					return nil
				}
				require.NoError(t, harmAll())
				// answers reports whether the replica answers with all rows. One that does before the harm was noticed has just
				// put its log into the file, which mended it.
				answers := func() bool {
					answered := whole(20001 + round)
					if answered && !noticed.MatchString(log.String()[before:]) {
						_ = harmAll()
					}
					return answered
				}
				sqldtest.Exec(t, primary, "INSERT INTO probe VALUES (0, '')")
				if round > 0 {
					require.Eventually(t, func() bool {
						_ = answers()
						return strings.Contains(log.String()[before:], "damaged again") || noticed.MatchString(log.String()[before:])
					}, time.Minute, 20*time.Millisecond, "%v", log)
					// Nobody asks now: a balancer sends nothing to an edge that is not ready.
					copied := regexp.MustCompile("removed, and copied anew|reseting  replica")
					require.Eventually(t, func() bool { return copied.MatchString(log.String()[before:]) }, time.Minute, 20*time.Millisecond, "%v", log)
				}
				require.Eventually(t, func() bool {
					answered := answers()
					return noticed.MatchString(log.String()[before:]) && answered
				}, time.Minute, 20*time.Millisecond, "%v", log)
			}
			require.LessOrEqual(t, strings.Count(log.String(), "removed, and copied anew"), rounds)
		})
	}
}

// holdsNothing is a replica's reader outside of pushes.
type holdsNothing struct{}

func (holdsNothing) Refresh() {}

func (holdsNothing) Read(context.Context, string, []any) (columns []string, values []any, ok bool) {
	return nil, nil, false
}

// TestAReplicaWhosePrimaryBeginsANewLogAnswersOldConnections: they ask for a frame that the new log does not have.
func TestAReplicaWhosePrimaryBeginsANewLogAnswersOldConnections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (0)")
	for n := 1; n <= 20; n++ { // a frame each, where a new log has one for each page
		sqldtest.Exec(t, primary, fmt.Sprintf("UPDATE probe SET n = %d", n))
	}
	keyFile, token, err := pki.ReadLink(filepath.Join(dir, "link"), time.Now)
	require.NoError(t, err)
	replica := sqldtest.Start(t, sqld.Config{
		HTTP: testkit.FreePort(t), Dir: filepath.Join(dir, "replica"), Primary: "http://" + primary.GRPC, Log: &testkit.Log{},
		Reads: &sqld.Reads{KeyFile: keyFile, Token: token, Admit: func(string) bool { return true }},
	})
	db := sqldtest.Open(t, replica)
	db.SetMaxOpenConns(1)
	reads := func(want int) func() bool {
		return func() bool {
			var n int
			return db.QueryRowContext(t.Context(), "SELECT n FROM probe").Scan(&n) == nil && n == want
		}
	}
	require.Eventually(t, reads(20), patience, 20*time.Millisecond)
	primary.Kill()
	require.NoError(t, primary.Start())
	sqldtest.Await(t, primary, "")
	sqldtest.Exec(t, primary, "UPDATE probe SET n = 21")
	require.Eventually(t, reads(21), patience, 20*time.Millisecond)
}

// TestAReplicaFollowsThoughNobodyAsks: its edge may be away, or be answered for it.
func TestAReplicaFollowsThoughNobodyAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	primary := sqldtest.Primary(t)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (pad BLOB)", "INSERT INTO probe VALUES (zeroblob(1048576))")
	keyFile, token, err := pki.ReadLink(filepath.Join(dir, "link"), time.Now)
	require.NoError(t, err)
	replica := &sqld.Server{Config: sqld.Config{
		Program: sqldtest.Program(t), HTTP: testkit.FreePort(t), Dir: filepath.Join(dir, "replica"), Primary: "http://" + primary.GRPC,
		Reads: &sqld.Reads{KeyFile: keyFile, Token: token, Admit: func(string) bool { return true }, Held: holdsNothing{}},
	}}
	require.NoError(t, replica.Start())
	t.Cleanup(replica.Stop)
	require.Eventually(t, func() bool {
		info, err := os.Stat(sqld.File(replica.Dir))
		return err == nil && info.Size() > 1<<20
	}, time.Minute, 20*time.Millisecond)
}
