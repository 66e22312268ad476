package regedge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// building stands for go and what it builds: the bindings are $BINDINGS, the component is $CODE, and TinyGo's module is in
// the tree.
const building = `case "$1 $2" in
"env GOVERSION") echo "${GO:-go1}"; exit ;;
"list -C") echo "$PWD/../module"; exit ;;
esac
while [ $# -gt 0 ]; do [ "$1" != -o ] || out=$2; shift; done
[ "$out" ] || exit 0
mkdir -p "${out%/*}"
case ${out##*/} in
tinygo) echo 'while [ "$1" != -o ]; do shift; done; echo "$CODE" >"$2"' >"$out" ;;
wit-bindgen-go) echo 'while [ "$1" != --out ]; do shift; done; mkdir -p "$2"; echo "$BINDINGS" >"$2/some.go"' >"$out" ;;
wasm-tools) echo 'for last; do :; done; cat "$last"' >"$out" ;;
esac
sed -i '1i #!/bin/sh' "$out"
chmod +x "$out"
`

// newBuild is a tree in which the component can be built, and was. Of the toolchain that it takes from the machine it has
// copies.
func newBuild(t *testing.T) *workshop {
	t.Helper()
	w := newWorkshop(t, nil, map[string]string{
		"go": building, "tinygo": `echo "tinygo version ${TINYGO:-0.1} linux/amd64"`, "g++": "",
		"dpkg-query": `case "$*" in *Version*) echo 1 ;; *) echo "${PACKAGES:-installed}" ;; esac`,
	})
	script, err := os.ReadFile("wasm/build.sh")
	require.NoError(t, err)
	w.write("wasm/build.sh", strings.NewReplacer("rt=/usr/", "rt=../usr/", "libc=/usr/", "libc=../usr/").Replace(string(script)))
	for name, content := range map[string]string{
		"usr/lib/llvm-19/lib/clang/19/lib/wasi/libclang_rt.builtins-wasm32.a": "", "usr/lib/wasm32-wasi/libc.a": "",
		"module/src/some.go": "", "module/lib/some": "", "module/targets/wasm-unknown.json": "{\n\"rtlib\": \"x\",\n\"libc\": \"x\",\n\"ldflags\": [\"--no-entry\"]\n}\n",
		"wasm/toolchain.lock": "go go1\nclang 1\n", "wasm/wit/some.wit": "", "wasm/guest/main.go": "", "wasm/labels/doc.go": "", "wasm/tools/go.mod": "",
		"handler/some.go": "hello", "handler/some_test.go": "",
	} {
		w.write(name, content)
	}
	said, code := w.run([]string{"CODE=one", "BINDINGS=one"}, "sh", "wasm/build.sh")
	require.Zero(t, code, said)
	return w
}

// TestTheComponentIsComparedWithWhatItsSourceBuildsTo, and its bindings with what they are made from. Another toolchain builds
// other bytes.
func TestTheComponentIsComparedWithWhatItsSourceBuildsTo(t *testing.T) {
	w := newBuild(t)
	require.Equal(t, "one\n", w.read("wasm/registry.wasm"))
	require.Equal(t, "one\n", w.read("wasm/bindings/some.go"))
	sources := w.read("wasm/registry.sources")
	require.Contains(t, sources, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824  handler/some.go\n")
	require.Equal(t, 3, strings.Count(sources, "\n"), "no tests: %s", sources)
	target := w.read("build/wasm/tinygo-root/targets/wasm-unknown.json")
	require.Equal(t, "{\n\"ldflags\": [\"--no-entry\", \"{root}/lib/libc.a\", \"{root}/lib/libclang_rt.builtins-wasm32.a\"]\n}\n", target)
	for _, c := range []struct {
		environment, asked, says string
		fails                    bool
	}{
		{"", "--check", "bindings and registry.wasm are up to date", false},
		{"CODE=other", "--check", "registry.wasm is older than its sources", true},
		{"CODE=other", "--check-if-installed", "registry.wasm is older than its sources", true},
		{"BINDINGS=other GO=go2", "--check", "bindings is older than wasm/wit", true},
		{"CODE=other GO=go2", "--check", "registry.wasm is not compared", false},
		{"CODE=other TINYGO=0.41.1", "--check", "registry.wasm is not compared", false},
	} {
		said, code := w.run(append([]string{"CODE=one", "BINDINGS=one"}, strings.Fields(c.environment)...), "sh", "wasm/build.sh", c.asked)
		require.Equal(t, c.fails, code != 0, "%s %s: %s", c.asked, c.environment, said)
		require.Contains(t, said, c.says, c.environment)
	}
	require.Equal(t, "one\n", w.read("wasm/registry.wasm"), "a check changes nothing")
}

// TestTheToolchainOfTheComponentIsRequiredWithTheTools: elsewhere the check is left out without it, and says so.
func TestTheToolchainOfTheComponentIsRequiredWithTheTools(t *testing.T) {
	w := newBuild(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.root, "wasm/registry.wasm"), []byte("other"), 0o600))
	said, code := w.run([]string{"PACKAGES=unknown"}, "sh", "wasm/build.sh", "--check-if-installed")
	require.Zero(t, code, said)
	require.Contains(t, said, "skipped: the toolchain of the component is not installed")
	said, code = w.run([]string{"PACKAGES=unknown", "REGEDGE_TOOLS=required"}, "sh", "wasm/build.sh", "--check-if-installed")
	require.Equal(t, 1, code, said)
	said, code = w.run(nil, "sh", "wasm/build.sh", "--chek")
	require.Equal(t, 2, code, said)
}
