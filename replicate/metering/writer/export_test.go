package writer

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/schema"
)

// OpenAccess opens the access database in dir until the test ends. It is never synced: otherwise the disk would decide
// whether a change is projected within projectWait.
func OpenAccess(t testing.TB, dir string) *sql.DB {
	t.Helper()
	name, err := schema.FileURI(filepath.Join(dir, "access.db"), false)
	require.NoError(t, err)
	db, err := driver.Open(name+"&_pragma=synchronous(off)", func(c *sqlite3.Conn) error { return schema.Prepare(c, false) })
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// ChangingRoutes lists what operators and owners can change, as "method path".
func (w *Writer) ChangingRoutes() (routes []string) {
	for _, r := range w.table() {
		if r.method != http.MethodGet && r.needs != edges {
			routes = append(routes, r.method+" "+r.path)
		}
	}
	return routes
}

// CompareLate has the projector compare what may have arrived late when one of the channels says so that it sends, not
// after a minute. It is called before Run.
func (w *Writer) CompareLate() (armed <-chan chan<- time.Time) {
	all := make(chan chan<- time.Time, 8)
	w.projector.after = func(time.Duration) <-chan time.Time {
		late := make(chan time.Time, 1)
		all <- late
		return late
	}
	return all
}

// UsageAtOnce is how many rows of usage are read at once of a server.
const UsageAtOnce = usageAtOnce
