package conformance

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wasm/build.sh writes the hashes of the component's sources beside registry.wasm, in the
// format of sha256sum with paths from the module's root.
const sourceHashes = "wasm/registry.sources"

// StaleSource returns the path of a source that changed since wasm/registry.wasm was built, or
// "" if there is none. root is the module's folder.
func StaleSource(root string) (string, error) {
	built, err := readHashes(filepath.Join(root, sourceHashes))
	if err != nil {
		return "", err
	}
	for _, folder := range []string{"handler", "wasm/guest", "wasm/labels"} {
		changed := ""
		err := fs.WalkDir(os.DirFS(root), folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !isSource(path) {
				return err
			}
			content, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				return err
			}
			sum := sha256.Sum256(content)
			if built[path] != hex.EncodeToString(sum[:]) {
				changed = path
				return fs.SkipAll
			}
			delete(built, path)
			return nil
		})
		if err != nil || changed != "" {
			return changed, err
		}
	}
	for removed := range built {
		return removed, nil
	}
	return "", nil
}

func isSource(path string) bool {
	return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
}

func readHashes(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	hashes := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		hash, source, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			return nil, fmt.Errorf("%s: malformed line %q", path, lines.Text())
		}
		hashes[source] = hash
	}
	return hashes, lines.Err()
}
