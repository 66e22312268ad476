package sqld

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// seedPause is how often a primary looks for a seed.
const seedPause = 500 * time.Millisecond

// SeedFile is the path at which a primary in dir looks for a seed: a whole database, closed and in one
// file, that takes the place of its own. A seed is moved there from the same file system, so that it
// is whole from the first moment. The primary removes it by taking it over.
func SeedFile(dir string) string { return filepath.Join(dir, "seed", "data") }

// awaitSeed restarts a primary that has a seed. Its replicas find another log then, and copy the new
// database from its beginning.
func (s *Server) awaitSeed(r *run) {
	ticks := time.NewTicker(seedPause)
	defer ticks.Stop()
	for {
		select {
		case <-r.ended:
			return
		case <-ticks.C:
		}
		if exists(SeedFile(s.Dir)) {
			// Nothing of the old database is needed any more, so it is not asked to close it.
			s.restart(r, "a whole database was handed over: the primary is started again with it", os.Kill)
			return
		}
	}
}

// takeSeed puts the seed, if there is one, in the place of a primary's database. After an interruption
// the next start goes on with it. The server must not run.
func (s *Server) takeSeed(output *output) error {
	seed := SeedFile(s.Dir)
	if !exists(seed) {
		return nil
	}
	output.say("taking over the database that was handed over")
	if err := s.discard(); err != nil {
		return fmt.Errorf("remove the database that a seed replaces: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(File(s.Dir)), 0o700); err != nil {
		return err
	}
	return os.Rename(seed, File(s.Dir))
}
