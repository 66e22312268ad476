package sqlite

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler"
)

// maxCachedResults bounds the results that a connection caches, of about half a KiB each and always less
// than one. It covers the API keys in use on an edge at a time.
const maxCachedResults = 2048

// maxCachedBytes bounds the texts of one cached result: a key's hash, and its networks (288 bytes at most).
const maxCachedBytes = 384

// resultCache caches the results of statements with one parameter until the database changes.
// It is meant for the small access database, which every request queries for its key.
type resultCache struct {
	version *sqlite3.Stmt // PRAGMA data_version; nil if nothing is cached
	seen    int64         // data_version of the state that the results belong to
	// results are indexed by the value of the parameter. Of several statements with the same
	// parameter, only the last is cached.
	results map[string]cachedResult
}

// cacheKey is a statement with the value of its only parameter.
type cacheKey struct {
	statement string
	kind      handler.Kind
	text      string
}

type cachedResult struct {
	key    cacheKey
	result handler.Result
}

func newResultCache(sqlite *sqlite3.Conn) (c resultCache, err error) {
	c.results = make(map[string]cachedResult)
	if c.version, _, err = sqlite.PrepareFlags("PRAGMA data_version", sqlite3.PREPARE_PERSISTENT); err != nil {
		return c, fmt.Errorf("prepare data_version: %w", err)
	}
	return c, nil
}

// begin empties the cache if the database has changed since the last transaction. It is called
// at the start of a transaction, after which the state stays the same.
func (c *resultCache) begin() error {
	if c.version == nil {
		return nil
	}
	var now int64
	if c.version.Step() {
		now = c.version.ColumnInt64(0)
	}
	if err := c.version.Reset(); err != nil {
		clear(c.results) // the transaction goes on, but the results were not compared with its state
		return fmt.Errorf("read data_version: %w", err)
	}
	if now != c.seen {
		clear(c.results)
		c.seen = now
	}
	return nil
}

// key returns the cache key of a statement; false if its result is never cached.
func (c *resultCache) key(statement string, args []handler.Value) (key cacheKey, ok bool) {
	if c.version == nil || len(args) != 1 || args[0].Kind != handler.Blob && args[0].Kind != handler.Text {
		return cacheKey{}, false
	}
	return cacheKey{statement, args[0].Kind, args[0].Text}, true
}

// get fills dst with the cached result of a key, if there is one.
func (c *resultCache) get(key cacheKey, dst *handler.Result) bool {
	cached, ok := c.results[key.text]
	if !ok || cached.key != key {
		return false
	}
	dst.Columns, dst.Values = cached.result.Columns, append(dst.Values[:0], cached.result.Values...)
	return true
}

// put caches a result that has rows. Empty results are not cached: a client could fill the cache
// with keys that do not exist. When the cache is full, an arbitrary entry is evicted.
func (c *resultCache) put(key cacheKey, result *handler.Result) {
	size := len(key.text)
	for i := range result.Values {
		size += len(result.Values[i].Text)
	}
	if size > maxCachedBytes || result.Rows() == 0 {
		return
	}
	if len(c.results) >= maxCachedResults {
		for other := range c.results {
			delete(c.results, other)
			break
		}
	}
	values := append([]handler.Value(nil), result.Values...)
	c.results[key.text] = cachedResult{key, handler.Result{Columns: result.Columns, Values: values}}
}

func (c *resultCache) close() { _ = guard(c.version.Close) }
