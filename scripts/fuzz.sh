#!/bin/sh
# Fuzzes every target for the duration in the first argument, such as 10s or 1h. A second argument, an
# extended regular expression, selects targets by name. A failing target does not stop the others. Failing
# inputs are kept in the package's testdata/fuzz: fix the bug and commit the input with the fix.
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

# lateEnd reports whether the last run failed only because Go up to 1.26 can take the end of the fuzz time for
# a failure (go.dev/issue/75804): the output names no input and shows only the deadline.
lateEnd() {
    ! grep -q -e 'Failing input' -e panic "$output" &&
        [ "$(sed -n '/^--- FAIL/,/^FAIL$/p' "$output" | sed '1d;$d')" = '    context deadline exceeded' ]
}

module=$(go list -m)
failed= found=
for package in $(go list ./handler/... ./schema/... ./replicate/... ./host/... ./internal/... ./web/... ./wasm/guest); do
    folder=.${package#"$module"}
    for target in $(cat "$folder"/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' | grep -E "${2:-.}"); do
        found=yes
        echo "fuzz $package $target"
        fuzz "$1" "$target" "$package" || { lateEnd && echo "again: $target" && fuzz "$1" "$target" "$package"; } ||
            failed="$failed $target"
    done
done
[ -n "$found" ] || { echo "fuzz: no target has such a name" >&2; exit 1; }
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
