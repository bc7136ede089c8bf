#!/bin/sh
# install.sh - installs cortex and cortex-verify, one file each, for one user or for all.
#
#   install.sh [--from URL|FOLDER] [--prefix FOLDER] [--version V] [--yes]
#   install.sh --uninstall [--prefix FOLDER]
#
# FOLDER of --prefix: default ~/.local, and /usr/local for root.  Nothing is installed before the signature of
# the list of hashes was checked with the key below, and the hash of each program with that list.  --uninstall
# removes what was installed, and nothing else: a file that was changed since, and every data directory, stay.
#
# Needs: ssh-keygen (8.0 or later), sha256sum or shasum, and curl or wget to install from a URL.
set -eu

# Filled in when a release is made (scripts/release.sh).  In a source tree there is none: then --key names it.
RELEASE_KEY=''
RELEASE_URL=''
RELEASE_VERSION=''

fail() {
    echo "install.sh: $*" >&2
    exit 3
}
usage() {
    sed -n '4,5s/^# *//p' "$0" >&2
    exit 2
}

from=$RELEASE_URL
version=$RELEASE_VERSION
key=$RELEASE_KEY
prefix=
remove=no
yes=no
while [ $# -gt 0 ]; do
    case $1 in
    --from | --prefix | --version | --key)
        [ $# -ge 2 ] && [ -n "$2" ] || usage
        case $1 in
        --from) from=$2 ;;
        --prefix) prefix=$2 ;;
        --version) version=$2 ;;
        --key) key=$2 ;;
        esac
        shift 2
        ;;
    --uninstall) remove=yes && shift ;;
    --yes) yes=yes && shift ;;
    *) usage ;;
    esac
done
if [ -z "$prefix" ]; then
    if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
fi
case $prefix in /*) ;; *) fail "--prefix: expected an absolute path" ;; esac
kept=$prefix/share/cortex/installed

hash_of() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1" | cut -c1-64
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 "$1" | cut -c1-64
    else
        fail "neither sha256sum nor shasum is here"
    fi
}

if [ "$remove" = yes ]; then
    [ -f "$kept" ] || fail "nothing is installed below $prefix by install.sh"
    left=no
    while read -r hash path; do
        if [ ! -e "$path" ]; then
            continue
        elif [ "$(hash_of "$path")" = "$hash" ]; then
            rm -f "$path" && echo "removed $path"
        else
            echo "kept $path: it was changed since it was installed" >&2
            left=yes
        fi
    done <"$kept"
    [ "$left" = yes ] || rm -f "$kept"
    rmdir "$prefix/share/cortex" 2>/dev/null || true
    echo "Data directories are kept: they are evidence, and yours to delete."
    exit 0
fi

[ -n "$from" ] || fail "--from: expected the URL or the folder of a release"
[ -n "$key" ] || fail "this file has no release key: take install.sh from a release, or give --key 'ssh-ed25519 ...'"
command -v ssh-keygen >/dev/null 2>&1 ||
    fail "ssh-keygen is not here, so the signature cannot be checked; it is in OpenSSH's client"
case $(uname -s) in
Linux) ;;
*) fail "there are programs for Linux only, and this is $(uname -s)" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=x86_64 ;;
aarch64 | arm64) arch=aarch64 ;;
*) fail "there is no program for $(uname -m); build from source" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 3' INT TERM HUP

# get NAME LIMIT: at most so many bytes, or fails.
get() {
    case $from in
    https://* | http://127.0.0.1* | http://localhost*)
        if command -v curl >/dev/null 2>&1; then
            curl -fsSL --max-filesize "$2" --retry 3 -o "$work/$1" "$from/$1" || fail "cannot get $from/$1"
        elif command -v wget >/dev/null 2>&1; then
            wget -q -O "$work/$1" "$from/$1" || fail "cannot get $from/$1"
        else
            fail "neither curl nor wget is here"
        fi
        ;;
    *://*) fail "--from: expected https:// or a folder, found $from" ;;
    *) [ -f "$from/$1" ] && cp "$from/$1" "$work/$1" || fail "there is no $from/$1" ;;
    esac
    [ "$(wc -c <"$work/$1")" -le "$2" ] || fail "$1 is longer than $2 bytes"
}

get SHA256SUMS 65536
get SHA256SUMS.sig 65536
printf 'cortex-release namespaces="cortex-release" %s\n' "$key" >"$work/signers"
ssh-keygen -Y verify -f "$work/signers" -I cortex-release -n cortex-release -s "$work/SHA256SUMS.sig" \
    <"$work/SHA256SUMS" >"$work/said" 2>&1 ||
    fail "the signature of SHA256SUMS is not that of the release key; nothing was installed: $(tail -n 1 "$work/said")"
# The list says which version it is of: an older signed one is not taken for the one that was asked for.
if [ -z "$version" ]; then
    version=$(sed -n 's/^[0-9a-f]\{64\}  cortex-\([0-9][0-9.]*\)-linux-.*$/\1/p' "$work/SHA256SUMS" | head -n 1)
fi

for program in cortex cortex-verify; do
    name=$program-$version-linux-$arch
    wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$work/SHA256SUMS")
    [ -n "$wanted" ] || fail "the signed list has no $name"
    get "$name" 67108864
    found=$(hash_of "$work/$name")
    [ "$found" = "$wanted" ] || fail "$name has the hash $found, the signed list says $wanted; nothing was installed"
    chmod 755 "$work/$name"
    "$work/$name" --version >/dev/null || fail "$name does not run here; nothing was installed"
done

echo "cortex $version for linux $arch: the signature and both hashes are right."
echo "This writes $prefix/bin/cortex and $prefix/bin/cortex-verify, and $kept."
if [ "$yes" = no ] && [ -t 0 ]; then
    printf 'Install? [y/N] '
    read -r answer
    case $answer in y | Y | yes) ;; *) echo "Nothing was installed." && exit 1 ;; esac
fi
mkdir -p "$prefix/bin" "$prefix/share/cortex" || fail "cannot write below $prefix"
for program in cortex cortex-verify; do
    target=$prefix/bin/$program
    if [ -e "$target" ] && { [ ! -f "$kept" ] || ! grep -q "^$(hash_of "$target")  $target\$" "$kept"; }; then
        fail "$target is there and was not installed by install.sh: remove it, or choose another --prefix"
    fi
done
: >"$work/installed"
for program in cortex cortex-verify; do
    target=$prefix/bin/$program
    cp "$work/$program-$version-linux-$arch" "$target.new"
    chmod 755 "$target.new"
    mv -f "$target.new" "$target"
    printf '%s  %s\n' "$(hash_of "$target")" "$target" >>"$work/installed"
done
cp "$work/installed" "$kept.new"
mv -f "$kept.new" "$kept"
echo "Installed. Undo it: install.sh --uninstall --prefix $prefix"
case :$PATH: in *:"$prefix/bin":*) ;; *) echo "Add $prefix/bin to PATH." ;; esac
