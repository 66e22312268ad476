#!/bin/sh
# Fuzzes every target for as long as the first argument says, such as 10s or 1h; with a second one,
# those whose name it matches (an extended regular expression), and the others after one that fails. What it
# finds is kept in testdata/fuzz of the package: mend it, and commit the input with the correction.
set -eu
cd "$(dirname "$0")/.."
failed=
for package in $(go list ./handler/... ./schema/... ./replicate/... ./host/... ./internal/... ./web/... ./wasm/guest); do
    folder=.${package#regedge}
    for target in $(cat "$folder"/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' | grep -E "${2:-.}"); do
        echo "fuzz $package $target"
        go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 1s "$package" || failed="$failed $target"
    done
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
