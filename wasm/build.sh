#!/bin/sh
# Builds the component from nothing.
#
#   wasm/build.sh           rewrites wasm/bindings, wasm/registry.wasm and wasm/registry.sources
#   wasm/build.sh --check   builds to build/wasm and fails if the committed files differ
#   wasm/build.sh --check-if-installed
#                           the same if the toolchain is installed, else nothing
#   wasm/build.sh --install installs and builds the toolchain, and nothing else
#
# A TinyGo of the pinned version on PATH is used. Without one, TinyGo is built from
# wasm/tools/go.mod with Debian's LLVM; missing packages are installed by apt-get, which
# needs root or sudo. Only the toolchain of toolchain.lock builds the same bytes: with
# another one the check compares only the bindings, and says so.
#
# Intermediate files are in build/wasm.
set -eu
cd "$(dirname "$0")"

tinygo_version=0.41.1
packages="llvm-19-dev libclang-19-dev lld-19 clang-19 libclang-rt-19-dev-wasm32 wasi-libc binaryen"
rt=/usr/lib/llvm-19/lib/clang/19/lib/wasi/libclang_rt.builtins-wasm32.a
libc=/usr/lib/wasm32-wasi/libc.a

work=$(mkdir -p ../build/wasm && cd ../build/wasm && pwd)
bin=$work/bin

say() { echo "wasm: $*" >&2; }

fail() {
    say "$@"
    exit 1
}

# tool NAME PACKAGE [FLAGS…] builds one tool of the nested module.
tool() {
    name=$1 package=$2
    shift 2
    go build -C tools "$@" -o "$bin/$name" "$package"
}

# fitting_tinygo succeeds when PATH has a TinyGo of the pinned version.
fitting_tinygo() {
    command -v tinygo >/dev/null && tinygo version | grep -q "version $tinygo_version "
}

missing_packages() {
    for package in $packages; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done
    command -v g++ >/dev/null || echo g++
}

install_packages() {
    command -v apt-get >/dev/null ||
        fail "no tinygo $tinygo_version on PATH and no apt-get to build one with; install TinyGo $tinygo_version"
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    say "installing" $missing
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2
}

# assemble_root makes a TinyGo root from the module's files. The module lacks the submodules
# of TinyGo's repository, so Debian's libc and compiler-rt replace those that TinyGo would
# build.
assemble_root() {
    root=$work/tinygo-root
    go mod download -C tools github.com/tinygo-org/tinygo
    module=$(go list -C tools -m -f '{{.Dir}}' github.com/tinygo-org/tinygo)
    rm -rf "$root"
    mkdir -p "$root/src/net"
    cp -R "$module/src" "$module/targets" "$module/lib" "$root"
    chmod -R u+w "$root"
    cp "$rt" "$libc" "$root/lib"
    sed -e '/"rtlib"/d' -e '/"libc"/d' \
        -e "s|\"--no-entry\"|&, \"{root}/lib/libc.a\", \"{root}/lib/$(basename "$rt")\"|" \
        "$module/targets/wasm-unknown.json" >"$root/targets/wasm-unknown.json"
}

prepare_tinygo() {
    if fitting_tinygo; then
        tinygo=tinygo
        return
    fi
    install_packages
    assemble_root
    say "building TinyGo $tinygo_version"
    tool tinygo github.com/tinygo-org/tinygo -tags llvm19
    tinygo=$bin/tinygo
    export TINYGOROOT="$root"
}

# generate writes the bindings of wasm/wit to DIR.
generate() {
    rm -rf "$1"
    "$bin/wit-bindgen-go" generate --world registry --cm go.bytecodealliance.org/cm \
        --package-root regedge/wasm/bindings --out "$1" wit >"$work/wit-bindgen-go.log" 2>&1 ||
        fail "wit-bindgen-go: $(cat "$work/wit-bindgen-go.log")"
}

# compile makes build/wasm/registry.wasm from the guest and wasm/bindings. The tag module.std
# leaves out the JSON half of package cm, which imports encoding/json. These wasm-tools see
# only their working directory.
compile() {
    "$tinygo" build -target guest/target.json -no-debug -panic=trap -opt=2 -tags module.std \
        -o "$work/core.wasm" ./guest
    rm -rf "$work/wit"
    cp -R wit "$work/wit"
    (
        cd "$work"
        "$bin/wasm-tools" component embed --world registry wit core.wasm >embedded.wasm
        "$bin/wasm-tools" component new embedded.wasm >registry.wasm
    )
}

# hash_sources prints the hashes of the sources, by which a failing vector tells whether it was
# run on an older component (internal/conformance/stale.go).
hash_sources() (
    cd ..
    find handler wasm/guest wasm/labels -name '*.go' ! -name '*_test.go' | LC_ALL=C sort | xargs sha256sum
)

# locked succeeds when the toolchain is the one of toolchain.lock.
locked() {
    [ "$tinygo" != tinygo ] || return 1
    while read -r name version; do
        case $name in
        go) have=$(go env GOVERSION) ;;
        *) have=$(dpkg-query -W -f '${Version}' "$name" 2>/dev/null) || have=none ;;
        esac
        if [ "$have" != "$version" ]; then
            say "$name is $have, toolchain.lock names $version"
            return 1
        fi
    done <toolchain.lock
}

check() {
    generate "$work/bindings"
    diff -r "$work/bindings" bindings >&2 ||
        fail "wasm/bindings is older than wasm/wit; run make wasm"
    compile
    if ! locked; then
        say "bindings are up to date; registry.wasm is not compared, this is another toolchain"
        return
    fi
    cmp "$work/registry.wasm" registry.wasm >&2 ||
        fail "wasm/registry.wasm is older than its sources; run make wasm"
    say "bindings and registry.wasm are up to date"
}

case ${1-} in
'' | --check | --install) ;;
--check-if-installed)
    if ! fitting_tinygo && { ! command -v dpkg-query >/dev/null || [ -n "$(missing_packages)" ]; }; then
        [ "${REGEDGE_TOOLS-}" != required ] || fail "REGEDGE_TOOLS=required, but the toolchain of the component is not installed"
        say "skipped: the toolchain of the component is not installed; make tools installs it"
        exit 0
    fi
    ;;
*)
    say "usage: wasm/build.sh [--check | --check-if-installed | --install]"
    exit 2
    ;;
esac

tool wit-bindgen-go go.bytecodealliance.org/cmd/wit-bindgen-go
tool wasm-tools go.bytecodealliance.org/internal/cmd/wasm-tools
prepare_tinygo
[ "${1-}" != --install ] || exit 0
if [ $# -gt 0 ]; then
    check
    exit
fi
generate bindings
compile
cp "$work/registry.wasm" registry.wasm
hash_sources >registry.sources
say "wasm/registry.wasm has $(wc -c <registry.wasm) bytes"
