#!/usr/bin/env bash
# Makes a minimal root of a Debian suite for the virtual machines of make test-vm, and sets up this checkout in it.
# Runs in mount and process namespaces of its own, which end with it.
#
#   scripts/make-root.sh root DIRECTORY SUITE SOURCES [PACKAGES...]   a root with PACKAGES
#   scripts/make-root.sh set-up DIRECTORY COMMIT [ARGS...]            the checkout at COMMIT, set up with ARGS
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# shellcheck source=scripts/root.sh
. "$ROOT/scripts/root.sh"

if [ -z "${FAIRQ_ROOT_NAMESPACE-}" ]; then
    FAIRQ_ROOT_NAMESPACE=1 exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc "$ROOT/scripts/make-root.sh" "$@"
fi

make_root() { # DIRECTORY SUITE SOURCES PACKAGES...
    local directory=$1 suite=$2 sources=$3
    shift 3
    apt_access "$directory-apt.conf"
    mmdebstrap --mode=root --variant=minbase --include="$(tr ' ' , <<<"$*")" --aptopt="$directory-apt.conf" \
        --dpkgopt=force-unsafe-io "$suite" "$directory" "$sources"
    no_services "$directory"
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
    bind_find_links "$directory"
    for name in $(passed_on); do environment+=("$name=${!name}"); done
    chroot "$directory" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb PATH="$PATH_OF" "${environment[@]}" \
        "$HOME_OF/scripts/setup.sh" --no-ovs "$@"
}

case ${1-} in
    root) shift; make_root "$@" ;;
    set-up) shift; set_up "$@" ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$ROOT/scripts/make-root.sh" >&2; exit 2 ;;
esac
