#!/usr/bin/env bash
# token.sh NAME SCOPE [NAMESPACE] - makes a token in the running server and keeps it as the Secret NAME, key `token`.
#
# SCOPE is one of 'cortex token add', such as trace:write.  The token is shown nowhere: it goes from the server into
# the Secret, and agents mount that.  Exits 1 when there is such a Secret already.
set -euo pipefail
[ $# -ge 2 ] && [ $# -le 3 ] || {
    sed -n '2s/^# *//p' "$0" >&2
    exit 2
}
name=$1
scope=$2
space=${3:+--namespace=$3}
kubectl=${KUBECTL:-kubectl}
if "$kubectl" get secret "$name" ${space:+"$space"} >/dev/null 2>&1; then
    echo "token.sh: the Secret $name exists; delete it, and revoke its token, before a new one is made" >&2
    exit 1
fi
token=$("$kubectl" exec cortex-0 ${space:+"$space"} -- /usr/bin/cortex token add --scope "$scope" --name "$name")
[ -n "$token" ] || { echo "token.sh: the server gave no token" >&2; exit 3; }
printf '%s' "$token" | "$kubectl" create secret generic "$name" ${space:+"$space"} --from-file=token=/dev/stdin
