#!/bin/sh
# Measures whether a package's own tests notice mistakes: gremlins changes one operator at a time in
# a copy of the tree, and the package's tests (-short) should fail. Prints the mutants that lived, with
# their lines, and the sums; build/mutate keeps them.
#
#     sh scripts/mutate.sh replicate/metering/lease
#     SAMPLE=4 SEED=1 sh scripts/mutate.sh host/engine     # every fourth line, from the first
#
# WORKERS (1) is how many mutants are tested at once, FACTOR (5) how many times longer than the tests
# without a mutant they may take, FLAGS (-short) are for the tests, DRY=1 only counts the mutants.
set -eu
cd "$(dirname "$0")/.."
package=${1#./}
sample=${SAMPLE:-1}
seed=${SEED:-0}
out=$PWD/build/mutate
mkdir -p "$out" build/bin
go build -C tools/gremlins -o ../../build/bin/ github.com/go-gremlins/gremlins/cmd/gremlins
gremlins=$PWD/build/bin/gremlins

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/tree" "$work/bin" "$work/tmp"
git ls-files -z -co --exclude-standard | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh |
    tar cf - --null -T - | tar xf - -C "$work/tree"

# Gremlins counts a mutant that does not compile as found: go test exits with 1 for both. It reads exit
# code 2 as a mutant that could not be tested. It also skips code without a block in Go's coverage
# (conditions of a switch, constants), so tell it that every line is covered.
cat >"$work/bin/go" <<SH
#!/bin/sh
[ "\$1" = test ] || exec $(command -v go) "\$@"
shift
said=\$($(command -v go) test ${FLAGS--short} -vet=off "\$@" 2>&1) && status=0 || status=\$?
printf '%s\n' "\$said"
while [ \$# -gt 0 ]; do
    [ "\$1" != -coverprofile ] || sed -i -E 's/^(.*\.go):.*/\1:1.1,99999.1 1 1/' "\$2"
    shift
done
case \$said in *"[build failed]"*) exit 2 ;; esac
exit \$status
SH
chmod +x "$work/bin/go"

cd "$work/tree/$package"
changed=
if [ "$sample" -gt 1 ]; then
    # gremlins takes samples by what changed in git: make every n-th line look new. It names files
    # as the package does, so the package is the whole repository.
    export GIT_DIR="$work/git" GIT_WORK_TREE="$work/tree/$package"
    git init -q
    for file in *.go; do
        cp "$file" "$work/tmp/$file"
        awk -v n="$sample" -v s="$seed" 'NR % n == s % n { $0 = $0 " //" } { print }' "$work/tmp/$file" >"$file"
    done
    git add -- *.go
    git -c user.name=mutate -c user.email=mutate@localhost commit -qm base
    for file in *.go; do cp "$work/tmp/$file" "$file"; done
    changed="--diff HEAD"
fi
name=$(echo "$package" | tr / -)
set +e
cd "$work/tree"
PATH=$work/bin:$PATH TMPDIR=$work/tmp "$gremlins" unleash "./$package" $changed \
    --workers "${WORKERS:-1}" --timeout-coefficient "${FACTOR:-5}" \
    --invert-negatives=false --invert-logical --invert-loopctrl --invert-bitwise --remove-self-assignments \
    --exclude-files / ${DRY:+--dry-run} >"$out/$name.$seed.txt" 2>&1
status=$?
set -e
cd "$package"
sed -i 's/\x1b\[[0-9;]*m//g; s/^ *//' "$out/$name.$seed.txt"
awk '/ at .*\.go:[0-9]+:[0-9]+$/ && !/^(KILLED|NOT VIABLE|SKIPPED)/ {
    split($NF, at, ":"); line = ""
    for (i = 1; i <= at[2] && (getline text < at[1]) > 0; i++) line = text
    close(at[1]); sub(/^[ \t]+/, "", line); print $0 "\t" line
}' "$out/$name.$seed.txt"
grep -vE ' at .*\.go:[0-9]+:[0-9]+$' "$out/$name.$seed.txt"
exit $status
