#!/usr/bin/env bash
# release.sh TAG FOLDER --key FILE [--attest FILE] [--url URL] [--no-packages] - makes all artefacts of a release.
#
# From TAG, in a clean clone: static programs for x86_64 and aarch64 with their symbols, packages for npm and
# pip that carry them, the offline verifier (one HTML file, and cortex-verify as WebAssembly), container images,
# Debian packages (--no-packages leaves these and the larger image out), a list of what each was made from
# (SPDX 2.3), the section of the changelog, and install.sh with the key in it.  --attest signs how they were built,
# with a key of 'cortex key new' (provenance.sh).  SHA256SUMS names all of them and
# is signed by FILE, an Ed25519 key of ssh-keygen.  Two runs give the same bytes but for the signature of other
# keys.  URL is where the artefacts will be; install.sh gets them from there.
set -euo pipefail
cd "$(dirname "$0")/.."
tag=
out=
key=
attest=
url=
packages=yes
usage() {
    sed -n '2s/^# *//p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --key) key=${2:?--key needs a file} && shift 2 ;;
    --attest) attest=$(realpath "${2:?--attest needs a file}") && shift 2 ;;
    --url) url=${2:?--url needs a URL} && shift 2 ;;
    --no-packages) packages=no && shift ;;
    -*) usage ;;
    *)
        if [ -z "$tag" ]; then tag=$1; elif [ -z "$out" ]; then out=$1; else usage; fi
        shift
        ;;
    esac
done
[ -n "$out" ] && [ -n "$key" ] || usage
[ -f "$key.pub" ] || { echo "release.sh: there is no $key.pub" >&2; exit 2; }
key=$(realpath "$key")
commit=$(git rev-parse --verify --quiet "$tag^{commit}") || { echo "release.sh: there is no tag $tag" >&2; exit 2; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -z "$(ls -A "$out")" ] || { echo "release.sh: $out is not empty" >&2; exit 2; }

clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT
git clone --quiet --no-local . "$clone/cortex"
cd "$clone/cortex"
git checkout --quiet --detach "$commit"
# Unpacked libraries of the other architecture are not part of the tree, and slow to get.
if [ -d "$OLDPWD/build/foreign/aarch64/root" ]; then
    mkdir -p build/foreign/aarch64
    ln -s "$OLDPWD/build/foreign/aarch64/root" build/foreign/aarch64/root
fi
version=$(sed -n 's/^project(cortex VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
./scripts/install-deps.sh build
./scripts/npm-ci.sh build
./scripts/static.sh x86_64 "$out"
./scripts/static.sh aarch64 "$out"
./scripts/offline-verifier.sh "$out"
./tools/make_packages.py "$out"
./scripts/image.sh "$out"
if [ "$packages" = yes ]; then
    ./scripts/package.sh build/package
    cp build/package/*.deb "$out"
    ./scripts/image.sh --full "$out"
fi
sed -n "/^## $version/,/^## [0-9]/p" CHANGELOG.md | sed '${/^## [0-9]/d}' >"$out/NOTES.md"
sed -e "s|^RELEASE_KEY=''|RELEASE_KEY='$(cut -d' ' -f1,2 "$key.pub")'|" -e "s|^RELEASE_URL=''|RELEASE_URL='$url'|" \
    -e "s|^RELEASE_VERSION=''|RELEASE_VERSION='$version'|" scripts/install.sh >"$out/install.sh"
chmod 755 "$out/install.sh"
./tools/make_sbom.py "$out" "$version" "$commit" >"$out/cortex-$version.spdx.json"
[ -z "$attest" ] || ./scripts/provenance.sh "$out" --key "$attest" --tag "$tag"
cd "$out"
find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
ssh-keygen -q -Y sign -f "$key" -n cortex-release SHA256SUMS
cat SHA256SUMS
