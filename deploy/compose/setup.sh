#!/bin/sh
# Makes the keys, certificates and tokens of the cluster of compose.yaml, and starts it:
#
#     sh deploy/compose/setup.sh            # with regedge on the PATH, or REGEDGE=./regedge
#
# secrets/trust holds the keys that sign; nothing in a container can read them. Run again, it keeps what
# is there. COMPOSE is the command that runs compose.yaml; CENTRE the name of the centre.
set -eu
cd "$(dirname "$0")"
regedge=${REGEDGE:-regedge}
compose=${COMPOSE:-docker compose}
centre=${CENTRE:-centre}
secrets=${SECRETS:-secrets}
trust=$secrets/trust
writer=${WRITER:-https://localhost:8081}
umask 077

# give FOLDER FILE…: copies for a container, whose user must be able to read them.
give() {
    folder=$secrets/$1
    shift
    mkdir -p "$folder"
    for file; do
        install -m 444 "$trust/${file%=*}" "$folder/${file#*=}"
    done
    chmod 755 "$folder"
}

if [ ! -e "$trust/ca.key" ]; then
    mkdir -p "$secrets"
    chmod 755 "$secrets"
    "$regedge" trust init --trust "$trust" >/dev/null
fi
[ -e "$trust/primary.crt" ] || "$regedge" trust machine primary --trust "$trust" --host "$centre" >/dev/null
[ -e "$trust/writer.crt" ] || "$regedge" trust machine writer --trust "$trust" --host "$centre" --host localhost >/dev/null
give centre registry.pub access.pub ca.crt primary.crt primary.key writer.crt writer.key
if [ ! -e "$secrets/centre.env" ]; then
    access=$("$regedge" trust token access --trust "$trust")
    registry=$("$regedge" trust token registry --trust "$trust")
    cat >"$secrets/centre.env.part" <<END
REGEDGE_TLS_CERT=/run/regedge/trust/writer.crt
REGEDGE_TLS_KEY=/run/regedge/trust/writer.key
REGEDGE_TOKEN=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
REGEDGE_ACCESS_TOKEN=$access
REGEDGE_REGISTRY_TOKEN=$registry
END
    mv "$secrets/centre.env.part" "$secrets/centre.env"
fi
# Compose wants to read the files of all services, also when it starts one of them.
for node in east west; do
    [ -e "$secrets/$node.env" ] || : >"$secrets/$node.env"
done
$compose up -d --wait centre

export SSL_CERT_FILE="$trust/ca.crt" REGEDGE_WRITER="$writer"
REGEDGE_TOKEN=$(sed -n 's/^REGEDGE_TOKEN=//p' "$secrets/centre.env")
export REGEDGE_TOKEN
for node in east west; do
    [ ! -s "$secrets/$node.env" ] || continue
    # Where a run was interrupted before it stored the token, the next one gets the same by this key.
    [ -s "$secrets/$node.once" ] || head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$secrets/$node.once"
    made=$("$regedge" node add "$node" --trust "$trust" --idempotency-key "$(cat "$secrets/$node.once")")
    give "$node" registry-replica.pub access-replica.pub ca.crt "edge-$node.crt=edge.crt" "edge-$node.key=edge.key"
    cat >"$secrets/$node.env.part" <<END
REGEDGE_WRITER=https://$centre:8081
REGEDGE_TOKEN=$(echo "$made" | grep -m1 '^reg_node_')
REGEDGE_REGISTRY_TOKEN=$(echo "$made" | sed -n 's/^registry  *//p')
REGEDGE_ACCESS_TOKEN=$(echo "$made" | sed -n 's/^access  *//p')
SSL_CERT_FILE=/run/regedge/trust/ca.crt
END
    mv "$secrets/$node.env.part" "$secrets/$node.env"
    rm "$secrets/$node.once"
done
$compose up -d

here=$(cd "$secrets" && pwd)
cat <<END
The cluster runs: lookups at http://127.0.0.1:8080 and http://127.0.0.1:8082, the writer at $writer.

    export SSL_CERT_FILE="$here/trust/ca.crt" REGEDGE_WRITER=$writer REGEDGE_TOKEN=\$(sed -n 's/^REGEDGE_TOKEN=//p' "$here/centre.env")
    regedge status --explain

Bring a registry to it from inside the centre, whose primary listens within its container only:

    $compose exec -T centre bash -c 'umask 077; cat >/var/lib/regedge/registry.db' <registry.db
    $compose exec centre regedge push /var/lib/regedge/registry.db --registry http://127.0.0.1:8181
END
