#!/bin/sh
# Gives the module another path, that of the repository in which it lives:
#
#     sh scripts/rehome.sh github.com/you/regedge
#
# It rewrites go.mod, the go.mod of nested modules, and every import. Only go.mod defines the path;
# everything else reads it or is rewritten here. Then go install MODULE/cmd/regedge@VERSION works.
set -eu
cd "$(dirname "$0")/.."

to=${1:?usage: sh scripts/rehome.sh MODULE, such as github.com/you/regedge}
from=$(go list -m)
case $to in
    *[!a-zA-Z0-9._~/-]* | /* | */ | *//* | -*) echo "rehome: $to is no module path" >&2; exit 2 ;;
    *.*/*) ;;
    *) echo "rehome: $to does not begin with a host, as github.com/you/regedge does" >&2; exit 2 ;;
esac
[ "$to" != "$from" ] || { echo "rehome: the module is there already" >&2; exit 2; }

# Only before one of these folders is the name the module's path, and not the program's name.
folders=$(git ls-files '*.go' | sed -n 's#/.*##p' | sort -u | tr '\n' '|')
old=$(printf '%s' "$from" | sed 's/[.]/\\./g')
git ls-files -z | xargs -0 grep -lIE -e "$old/($folders)" -- | while read -r file; do
    sed -i.rehomed -E "s#(^|[^A-Za-z0-9_./-])$old/(${folders%|})(\$|[^A-Za-z0-9_-])#\\1$to/\\2\\3#g" "$file"
    rm "$file.rehomed"
done
go mod edit -module "$to"
git ls-files -z '*.go' | xargs -0 gofmt -l -w
echo "rehome: $from is $to now; next: make wasm (the component's names have the path in them), make check"
