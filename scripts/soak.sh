#!/bin/sh
# Runs what takes longer than make test, one after another, and prints what it measures.
set -eu
cd "$(dirname "$0")/.."

# A cluster under 1,000 lookups a second at each edge: its parts are broken in turn, its
# network is cut for ten minutes, its primary writes without pause for ten more, and its clocks jump.
SOAK=1 go test -count=1 -timeout 2h -v -run 'NoLookupFails|DuringFastWrites|ClocksJump|AMonthEnds' ./internal/cluster

# Every statement that takes a lock, in every way that an edge has, at the primaries of both databases.
SOAK=1 go test -count=1 -timeout 1h -v -run NoEdgeHoldsUpAPrimary ./host/cli

# Imports that are killed: 100 within one of 200,000 companies, with two readers beside it.
go test -count=1 -timeout 3h -v -run KilledIsOldOrNew ./host/cli -kills "${KILLS:-100}" -kill-companies "${KILL_COMPANIES:-200000}"

# Metering: 200,000 seeds of the simulation, its mutants, 50 rounds of kill -9 on real
# processes, a standby that takes over, and every decoder fuzzed for an hour.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -count=1 -timeout 12h -v -run 'TestSeeds|TestSameSeed' ./internal/simulation -seeds "${SEEDS:-200000}" >"$log" 2>&1 || {
    grep -v 'PASS\|=== RUN' "$log"
    exit 1
}
grep -v 'seed=[0-9]' "$log"
go test -count=1 -timeout 1h -v -run Mutants ./internal/simulation
# Every charge of a graceful stop is answered, in 50 stops under load with each protocol.
go test -count=1 -timeout 10m -run EveryChargeOfAStop ./host/server -stops 50
CGO_ENABLED=0 go build -C tools/litestream -o ../../build/bin/litestream github.com/benbjohnson/litestream/cmd/litestream
# A customer beside every attack on an edge, for a minute each.
go test -count=1 -timeout 1h -v -run BesideAttackers ./internal/chaos -alone -attack 1m -p99 25ms
# Chaos: histories of clients and operators must be linearizable, and those of programs with a planted fault
# must not. An edge is stopped under load 50 times, and each answer is spent once.
LITESTREAM=$PWD/build/bin/litestream go test -count=1 -timeout 2h -v ./internal/chaos -rounds "${ROUNDS:-50}" -histories "${HISTORIES:-50}" -stops "${STOPS:-50}" -planted -shipped 1s
sh scripts/fuzz.sh "${FUZZ:-1h}"
