#!/usr/bin/env bash
# Makes a minimal root of a Debian suite for the virtual machines of make test-vm, and sets up this checkout in it.
# Runs in mount and process namespaces of its own, which end with it.
#
#   scripts/make-root.sh root DIRECTORY SUITE SOURCES [PACKAGES...]   a root with make, kmod and PACKAGES
#   scripts/make-root.sh set-up DIRECTORY COMMIT [ARGS...]            the checkout at COMMIT, set up with ARGS
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
HOME_OF=/opt/fairq_ryu
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

if [ -z "${FAIRQ_ROOT_NAMESPACE-}" ]; then
    FAIRQ_ROOT_NAMESPACE=1 exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

# The settings with which this machine reaches the registries.
copy_configuration() { # ROOT
    local each
    for each in /etc/pip.conf /etc/xdg/pip /root/.pip /root/.config/pip /etc/apt/auth.conf /etc/apt/auth.conf.d \
        /usr/local/share/ca-certificates /etc/ssl/certs /etc/resolv.conf /etc/hosts; do
        [ -e "$each" ] || continue
        if [ -d "$each" ]; then
            mkdir -p "$1$each"
            cp -a "$each/." "$1$each/"
        else
            mkdir -p "$1${each%/*}"
            cp -L "$each" "$1$each"
        fi
    done
}

make_root() { # DIRECTORY SUITE SOURCES PACKAGES...
    local directory=$1 suite=$2 sources=$3
    shift 3
    # Of this machine's configuration of apt, how it reaches the mirrors: hooks of others would run in the empty root.
    apt-config dump | grep ^Acquire:: | grep -v ::IndexTargets >"$directory-apt.conf"
    mmdebstrap --mode=root --variant=minbase --include="$(IFS=,; echo "make kmod $*" | tr ' ' ,)" \
        --aptopt="$directory-apt.conf" \
        --dpkgopt=force-unsafe-io "$suite" "$directory" "$sources"
    # Services are not started in a root that is being made.
    printf '#!/bin/sh\nexit 101\n' >"$directory/usr/sbin/policy-rc.d"
    chmod +x "$directory/usr/sbin/policy-rc.d"
    mkdir -p "$directory/usr/lib/modules" "$directory/exchange"
}

set_up() { # DIRECTORY COMMIT ARGS...
    local directory=$1 commit=$2 name environment=()
    shift 2
    copy_configuration "$directory"
    git clone --quiet --no-hardlinks "$ROOT" "$directory$HOME_OF"
    git -C "$directory$HOME_OF" checkout --quiet --detach "$commit"
    mount -t proc proc "$directory/proc"
    mount --rbind /dev "$directory/dev"
    for name in ${PIP_FIND_LINKS-}; do
        [ -d "$name" ] || continue
        mkdir -p "$directory$name"
        mount --bind -o ro "$name" "$directory$name"
    done
    while read -r name; do environment+=("$name=${!name}"); done \
        < <(compgen -e | grep -E '^(PIP_.*|.*_(proxy|PROXY)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$')
    chroot "$directory" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${environment[@]}" \
        "$HOME_OF/scripts/setup.sh" --no-ovs "$@"
}

case ${1-} in
    root) shift; make_root "$@" ;;
    set-up) shift; set_up "$@" ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
