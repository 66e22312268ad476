#!/bin/sh
# Builds a release from the commit that is checked out:
#
#     sh scripts/release.sh VERSION [PLATFORM…]
#
# VERSION is such as 1.2.0, PLATFORM such as linux/arm64; all that are supported by default. It
# writes into build/release/VERSION an archive for each platform, the list of components (SBOM,
# CycloneDX) of each, and SHA256SUMS, which it signs when SIGNING_KEY names a private SSH key
# (checked by ssh-keygen -Y verify -n regedge).
#
# The same commit gives the same bytes with the same version of Go: paths, times, users and the state of
# the version control stay out of them. The first platform is built a second time in another
# folder, to prove it.
set -eu
cd "$(dirname "$0")/.."

version=${1:?usage: sh scripts/release.sh VERSION [PLATFORM…]}
shift
case $version in
    [0-9]*.[0-9]*.[0-9]*) ;;
    *) echo "release: $version is no version such as 1.2.0" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
[ -z "$(git status --porcelain)" ] || { echo "release: there are changes that are not committed" >&2; exit 1; }

commit=$(git rev-parse HEAD)
cli=$(go list ./host/cli)
time=$(git log -1 --format=%ct)
top=$PWD
out=$top/build/release/$version
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -C tools/release -o "$work/cyclonedx-gomod" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

# build FOLDER PLATFORM FILE: FOLDER has the sources.
build() {
    CGO_ENABLED=0 GOOS=${2%/*} GOARCH=${2#*/} GOFLAGS=-mod=readonly go build -C "$1" -trimpath -buildvcs=false \
        -ldflags "-s -w -buildid= -X $cli.linkedVersion=$version -X $cli.linkedCommit=$commit" -o "$3" ./cmd/regedge
}

for platform; do
    name=regedge_${version}_${platform%/*}_${platform#*/}
    echo "release: $name" >&2
    mkdir "$work/$name"
    build "$top" "$platform" "$work/$name/regedge"
    git archive HEAD -- LICENSE THIRD_PARTY_NOTICES '*.md' docs deploy | tar -C "$work/$name" -xf -
    chmod 755 "$work/$name/regedge"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$time" -cf - "$name" |
        gzip -n -9 >"$out/$name.tar.gz"
    # Generated twice alike: without the time and the random serial number.
    "$work/cyclonedx-gomod" bin -json -noserial -notimestamp -licenses -std -version "v$version" \
        -output "$out/$name.cdx.json" "$work/$name/regedge" 2>"$work/sbom.log" || { cat "$work/sbom.log" >&2; exit 1; }
done

mkdir "$work/again"
git archive HEAD | tar -C "$work/again" -xf -
build "$work/again" "$1" "$work/second"
first=$work/regedge_${version}_${1%/*}_${1#*/}/regedge
cmp "$first" "$work/second" || { echo "release: two builds of $1 differ" >&2; exit 1; }

cd "$out"
sha256sum ./*.tar.gz ./*.cdx.json | sed 's# \./# #' >SHA256SUMS
if [ -n "${SIGNING_KEY-}" ]; then
    ssh-keygen -q -Y sign -f "$SIGNING_KEY" -n regedge SHA256SUMS
fi
ls -l "$out" >&2
