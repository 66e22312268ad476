#!/bin/bash
# Runs an edge in one container: both replicas and the edge. It ends, with all of them, when one ends.
# With arguments it runs regedge with them.
#
#   CENTRE               name or address of the centre
#   /run/regedge/trust   registry-replica.pub, access-replica.pub, ca.crt, edge.crt, edge.key
#   /var/lib/regedge     the state; it belongs to one node
#   REGEDGE_…            as for regedge edge
set -u
[ $# -eq 0 ] || exec regedge "$@"
trust=${TRUST:-/run/regedge/trust}
data=${DATA:-/var/lib/regedge}

# In the background a function is a process of its own, which becomes regedge, so that it gets the signals.
replica() { # DATABASE HTTP GRPC-OF-THE-PRIMARY
    exec env -u REGEDGE_METRICS -u REGEDGE_PPROF regedge replica --dir "$data/replica-$1" --listen "127.0.0.1:$2" --primary "https://${CENTRE:?}:$3" \
        --jwt-key "$trust/$1-replica.pub" --tls-ca "$trust/ca.crt" --tls-cert "$trust/edge.crt" --tls-key "$trust/edge.key"
}
replica registry 8281 5181 & registry=$!
replica access 8282 5182 & access=$!
regedge edge --state "$data/edge" \
    --registry http://127.0.0.1:8281 --registry-replica "$data/replica-registry" \
    --access http://127.0.0.1:8282 --access-replica "$data/replica-access" & edge=$!

trap 'kill "$edge"' TERM INT
wait -n
code=$?
kill "$edge" 2>/dev/null
wait "$edge"
kill "$registry" "$access" 2>/dev/null
wait
exit "$code"
