#!/usr/bin/env bash
# The part of scripts/test-fresh.sh that runs as the first process of its own namespaces. They end with it, and
# so do all its mounts and processes.
#
#   scripts/test-fresh-inside.sh DIRECTORY SUITE WHAT [ARGS...]
#
# SUITE: the release of the root, "" for this machine's own;
# WHAT: "packages" to install the packages of dist/, or words of "demo", "test-package", "tests"; ARGS are for pytest.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
DIRECTORY=$1
SUITE=$2
WHAT=$3
shift 3
NEW=$DIRECTORY/root
NETWORK=/run/network
LOG=$DIRECTORY/log
# shellcheck source=scripts/root.sh
. "$ROOT/scripts/root.sh"

say() { echo "test-fresh: $*" >&2; }

# Nothing has been tested yet, so this is not a failure of the project.
cannot() {
    tail -n 15 "$LOG" | sed 's/^/    /' >&2
    say "cannot be done here: $*"
    exit 77
}

# The distribution's own package sources of this machine; a fresh machine has no others.
sources() {
    grep -lE '(debian|ubuntu)-archive-keyring|^ *(deb|URIs:).*(debian|ubuntu)' \
        /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true
}

# Copies of the source files "$@" in which the release CODENAME is SUITE: the same mirrors and keys.
sources_of_suite() { # CODENAME FILE...
    local codename=$1 each copy
    shift
    for each in "$@"; do
        copy=$DIRECTORY/${each##*/}
        sed "s/\b$codename\b/$SUITE/g" "$each" >"$copy"
        echo "$copy"
    done
}

# make is what README asks for; set-up installs the rest.
make_root() {
    local codename
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mapfile -t sources < <(sources)
    [ "${#sources[@]}" -gt 0 ] || cannot "/etc/apt names no source of this distribution"
    if [ -n "$SUITE" ] && [ "$SUITE" != "$codename" ]; then
        mapfile -t sources < <(sources_of_suite "$codename" "${sources[@]}")
        codename=$SUITE
    fi
    apt_access "$DIRECTORY/apt.conf"
    mmdebstrap --mode=root --variant=minbase --include=make \
        --aptopt="$DIRECTORY/apt.conf" \
        --dpkgopt=force-unsafe-io "$codename" "$NEW" "${sources[@]}" >"$LOG" 2>&1 \
        || cannot "mmdebstrap failed"
}

mount_system() {
    local each
    # pivot_root requires that the new root is a mount.
    mount --bind "$NEW" "$NEW"
    mount -t proc proc "$NEW/proc"
    mount --rbind /dev "$NEW/dev"
    for each in dev/shm run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$NEW/$each"; done
    bind_find_links "$NEW"
}

# A network namespace for Open vSwitch, the tests and the demo. /sys shows the network of the process that mounts it.
make_network() {
    touch "$NEW$NETWORK"
    unshare "--net=$NEW$NETWORK" true
    nsenter "--net=$NEW$NETWORK" mount -t sysfs sysfs "$NEW/sys"
}

# The new root becomes the root of the mount namespace. chroot is not enough: a process that enters the namespace
# of another one, as Mininet does to start a program in a host, gets the root of the namespace.
enter_root() {
    mkdir "$NEW/old"
    cd "$NEW"
    pivot_root . old 2>>"$LOG" || cannot "pivot_root failed"
    cd /
    umount -l /old
    rmdir /old
}

# in_root machine|own COMMAND...: runs a command in the machine's network, or in the own network namespace.
in_root() {
    local name enter=() environment=()
    for name in $(passed_on); do environment+=("$name=${!name}"); done
    [ "$1" = machine ] || enter=(nsenter "--net=$NETWORK")
    shift
    # Tests interrupt programs, so SIGINT must not be ignored even if the caller of this script ignores it.
    "${enter[@]}" /usr/bin/env -i --default-signal=INT,QUIT,TERM,HUP,PIPE -C "$HOME_OF" \
        HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH="$PATH_OF" \
        "${environment[@]}" "$@"
}

# The committed state of this checkout.
copy_checkout() {
    git clone --quiet --no-hardlinks "$ROOT" "$NEW$HOME_OF" 2>>"$LOG" || cannot "git clone failed"
    git -C "$NEW$HOME_OF" checkout --quiet --detach "$(git rev-parse HEAD)"
}

# The packages, and of the checkout only what tests them.
copy_packages() {
    local each
    for each in dist dist/upgrade; do
        compgen -G "$ROOT/$each/*.deb" >/dev/null || cannot "no packages in $each/: make test-package"
        mkdir -p "$NEW$HOME_OF/$each"
        cp "$ROOT/$each"/*.deb "$NEW$HOME_OF/$each/"
    done
    mkdir -p "$NEW$HOME_OF/scripts" "$NEW$HOME_OF/tests"
    cp "$ROOT/scripts/start-ovs.sh" "$ROOT/scripts/lib.sh" "$NEW$HOME_OF/scripts/"
    cp -r "$ROOT/tests/package" "$NEW$HOME_OF/tests/"
}

# What the packages depend on in Debian, and the tools of the test. The packages are installed without a network.
install_dependencies() {
    local needed
    needed=$(for each in "$HOME_OF"/dist/*.deb; do dpkg-deb --field "$each" Depends; done \
        | tr ',' '\n' | grep -v '^ *fairq-' | sort -u | paste -sd,)
    { in_root machine apt-get update -q &&
        in_root machine env DEBIAN_FRONTEND=noninteractive apt-get satisfy -q -y --no-install-recommends \
            "$needed, iproute2, ethtool, systemd"; } >>"$LOG" 2>&1 || cannot "apt-get cannot install $needed"
}

test_packages() {
    say "the packages of dist/ ..."
    LOG=/test-packages.log   # the former one is outside this root
    install_dependencies
    in_root own ip link set lo up
    in_root own scripts/start-ovs.sh
    in_root own /usr/bin/python3 -B tests/package/installed.py dist dist/upgrade
}

# As make test-package; make would hide the exit code.
build_and_test_packages() {
    in_root machine scripts/setup.sh --no-ovs &&
        in_root machine .venv/bin/python -m packages &&
        in_root machine .venv/bin/python -m packages --out dist/upgrade --revision 2 &&
        in_root machine scripts/test-fresh.sh --packages
}

say "a minimal root ..."
make_root
if [ "$WHAT" = packages ]; then
    copy_packages
else
    copy_checkout
    commit=$(git rev-parse --short HEAD)
fi
copy_configuration "$NEW"
no_services "$NEW"
mount_system
make_network
enter_root

# Only set-up needs the registries. It does not start Open vSwitch; the commands do.
code=0
if [ "$WHAT" = packages ]; then
    test_packages
    exit
fi
if [[ $WHAT = *demo* ]]; then
    say "make demo, $commit ..."
    in_root machine scripts/setup.sh --no-ovs
    in_root own ip link set lo up
    in_root own make demo || code=$?
fi
if [[ $WHAT = *test-package* ]]; then
    say "make test-package, $commit ..."
    build_and_test_packages || code=$?
    # Where it cannot run, it has said why.
    [ "$code" -ne 77 ] || code=0
fi
say "make test, $commit ..."
in_root machine scripts/setup.sh --dev --no-ovs
in_root own ip link set lo up
[ $# -eq 0 ] || printf -v PYTEST_ADDOPTS '%q ' "$@"
in_root own PYTEST_ADDOPTS="${PYTEST_ADDOPTS-}" make test || code=$?
exit "$code"
