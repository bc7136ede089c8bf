#!/usr/bin/env bash
# provenance.sh FOLDER --key KEYFILE [--tag TAG] [--version V] - signs how the artefacts in FOLDER were built.
#
# FOLDER gets cortex-V.provenance.json, an in-toto statement with SLSA provenance v1 about each file in it, signed by
# KEYFILE ('cortex key new'), and cortex-V.provenance.pub, the public key.  The statement is then verified against
# every file.  The program is $CORTEX_BIN, that of FOLDER, or of build/release.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=
key=
tag=
version=$(sed -n 's/^project(cortex VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
usage() {
    sed -n '2s/^# *//p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --key) key=${2:?--key needs a file} && shift 2 ;;
    --tag) tag=${2:?--tag needs a name} && shift 2 ;;
    --version) version=${2:?--version needs a number} && shift 2 ;;
    -*) usage ;;
    *) [ -z "$folder" ] || usage && folder=$1 && shift ;;
    esac
done
[ -n "$folder" ] && [ -n "$key" ] || usage
cortex=${CORTEX_BIN:-}
for candidate in "$folder/cortex-$version-linux-$(uname -m)" build/release/bin/cortex; do
    [ -n "$cortex" ] || [ ! -x "$candidate" ] || cortex=$(realpath "$candidate")
done
[ -n "$cortex" ] || { echo "provenance.sh: there is no cortex to sign with; set CORTEX_BIN" >&2; exit 3; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
statement=cortex-$version.provenance.json
public=cortex-$version.provenance.pub
# The statement cannot name itself, and the list of hashes is made of all files later.
files() {
    find "$folder" -maxdepth 1 -type f ! -name "$statement" ! -name "$public" ! -name 'SHA256SUMS*' -print0 | LC_ALL=C sort -z
}
[ -n "$(files | tr -d '\0')" ] || { echo "provenance.sh: $folder has no files" >&2; exit 2; }
./tools/make_provenance.py "$version" "$(git rev-parse HEAD)" ${tag:+--tag "$tag"} >"$work/predicate.json"
"$cortex" key show "$key" >"$work/public"
files | xargs -0 "$cortex" attest --type https://slsa.dev/provenance/v1 --predicate "$work/predicate.json" \
    --key "$key" -o "$work/statement" --
files | xargs -0 "$cortex" attest --check "$work/statement" --trusted "$work/public" \
    --type https://slsa.dev/provenance/v1 --
cp "$work/statement" "$folder/$statement"
cp "$work/public" "$folder/$public"
