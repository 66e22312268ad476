#!/bin/bash
# Runs the centre in one container: both primaries and the writer. It ends, with all of them, when one
# ends. With arguments it runs regedge with them.
#
#   /run/regedge/trust   registry.pub, access.pub, ca.crt, primary.crt, primary.key (never another key)
#   /var/lib/regedge     the state
#   WRITER_ONCE          a flag of the writer for one start, such as --restored
#   REGEDGE_…            as for regedge writer; REGEDGE_MIRROR and REGEDGE_MIRROR_UPLOAD as for regedge primary, of the registry
set -u
[ $# -eq 0 ] || exec regedge "$@"
trust=${TRUST:-/run/regedge/trust}
data=${DATA:-/var/lib/regedge}

# In the background a function is a process of its own, which becomes regedge, so that it gets the signals.
primary() { # DATABASE HTTP GRPC
    [ "$1" = registry ] || unset REGEDGE_MIRROR REGEDGE_MIRROR_UPLOAD # which are not for hashes of keys
    exec env -u REGEDGE_METRICS -u REGEDGE_PPROF regedge primary --dir "$data/primary-$1" --listen "127.0.0.1:$2" --replication "0.0.0.0:$3" \
        --jwt-key "$trust/$1.pub" --tls-ca "$trust/ca.crt" --tls-cert "$trust/primary.crt" --tls-key "$trust/primary.key"
}
primary registry 8181 5181 & registry=$!
primary access 8182 5182 & access=$!
mkdir -p "$data/writer"
regedge writer --database "$data/writer/ledger.db" --registry http://127.0.0.1:8181 --access http://127.0.0.1:8182 ${WRITER_ONCE:-} & writer=$!

trap 'kill "$writer"' TERM INT
wait -n
code=$?
kill "$writer" 2>/dev/null
wait "$writer"
kill "$registry" "$access" 2>/dev/null
wait
exit "$code"
