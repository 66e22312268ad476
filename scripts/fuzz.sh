#!/bin/sh
# Fuzzes every target for as long as the first argument says, such as 10s or 1h; with a second one,
# those whose name it matches (an extended regular expression), and the others after one that fails. What it
# finds is kept in testdata/fuzz of the package: mend it, and commit the input with the correction.
set -eu
cd "$(dirname "$0")/.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# fuzz runs the target $2 of the package $3 for $1.
fuzz() {
    {
        go test -run '^$' -fuzz "^$2\$" -fuzztime "$1" -fuzzminimizetime 1s "$3" 2>&1 || echo "status $?"
    } | tee "$output"
    [ "$(tail -n 1 "$output" | cut -d ' ' -f 1)" != status ]
}

# lateEnd says whether the last run failed only since Go up to 1.26 can take the end of the time for a
# failure (go.dev/issue/75804): it names no input and says nothing but the deadline.
lateEnd() {
    ! grep -q -e 'Failing input' -e panic "$output" &&
        [ "$(sed -n '/^--- FAIL/,/^FAIL$/p' "$output" | sed '1d;$d')" = '    context deadline exceeded' ]
}

failed=
for package in $(go list ./handler/... ./schema/... ./replicate/... ./host/... ./internal/... ./web/... ./wasm/guest); do
    folder=.${package#regedge}
    for target in $(cat "$folder"/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' | grep -E "${2:-.}"); do
        echo "fuzz $package $target"
        fuzz "$1" "$target" "$package" || { lateEnd && echo "again: $target" && fuzz "$1" "$target" "$package"; } ||
            failed="$failed $target"
    done
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
