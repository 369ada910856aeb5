#!/usr/bin/env bash
# Runs the two commands of README in a minimal root of this distribution, which is created for this run and contains
# the committed state of this checkout. Needs root, apt and unshare; installs mmdebstrap if it is missing.
#
#   scripts/test-fresh.sh                       make demo, then make test
#   scripts/test-fresh.sh --tests               only make test
#   scripts/test-fresh.sh --all                 make test-package, then make test
#   scripts/test-fresh.sh --packages            installs the packages of dist/ in a root without a checkout, governs
#                                               a bridge, upgrades to those of dist/upgrade/, and removes them
#   scripts/test-fresh.sh [--tests] -- ARGS...  make test with ARGS for pytest: directories, -k, -x, ...
#   scripts/test-fresh.sh --suite NAME [...]    any of these in another release: --suite trixie, on Debian 12
#
# Exit code 77: it cannot run on this machine, and nothing was tested. Nothing is left behind, even if this script
# is killed: all processes and mounts are in namespaces that end with it, and another process, which runs a little
# longer, removes the root.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
SCRIPT=$ROOT/scripts/test-fresh.sh
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
# shellcheck source=scripts/lib.sh
. "$ROOT/scripts/lib.sh"

LOG=$ROOT/.setup.log
NET=/proc/sys/net

say() { echo "test-fresh: $*" >&2; }

cannot() {
    say "cannot be done here: $*"
    exit 77
}

# --- clean-up after the run ---------------------------------------------------------------------

# Reads from a pipe whose other end the run has open, so the read ends when the run ends for any reason. Then it
# removes DIRECTORY, and restores OLD in each FILE that still has the value NEW.
clean_up() { # DIRECTORY [FILE NEW OLD]...
    trap '' INT TERM HUP
    cat >/dev/null
    local directory=$1
    shift
    while [ $# -gt 0 ]; do
        if [ "$(cat "$1")" = "$2" ]; then echo "$3" >"$1"; fi
        shift 3
    done
    # Programs that are being killed may still write files.
    for _ in $(seq 60); do
        if rm -rf --one-file-system "$directory" 2>/dev/null; then return; fi
        sleep 0.5
    done
    say "error: cannot remove $directory"
}

# --- before ---------------------------------------------------------------------------------------

check_checkout() {
    command -v git >/dev/null || cannot "no git"
    git rev-parse --verify --quiet HEAD >/dev/null || cannot "$ROOT is no git checkout"
    [ -z "$(git status --porcelain)" ] || say "uncommitted changes are not tested"
}

check() {
    [ "$(id -u)" -eq 0 ] || cannot "not root (sudo $0)"
    local program
    for program in apt-get unshare nsenter setpriv pivot_root mount umount; do
        command -v "$program" >/dev/null || cannot "no $program"
    done
    [ "$what" = packages ] || check_checkout
    unshare --mount --pid --ipc --uts --net --fork true 2>/dev/null || cannot "no namespaces may be made"
    command -v mmdebstrap >/dev/null && return
    say "system package mmdebstrap ..."
    { run_logged apt-get update -q &&
        run_logged env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends mmdebstrap; } \
        || cannot "no mmdebstrap, and apt-get cannot install it ($LOG)"
}

# Only the initial network namespace has these settings, and Open vSwitch and the hosts run in another one.
# For clean_up: FILE NEW OLD of each that is to be changed.
SETTINGS=()
want() { # FILE VALUE
    local before
    before=$(cat "$1")
    [ "$before" = "$2" ] || SETTINGS+=("$1" "$2" "$before")
}

list_settings() {
    local allowed=$NET/ipv4/tcp_allowed_congestion_control
    want "$allowed" "$(tr ' ' '\n' <"$allowed" | cat - <(tr ' ' '\n' <$NET/ipv4/tcp_available_congestion_control) | awk 'NF && !seen[$0]++' | paste -sd' ')"
    [ "$(cat $NET/core/wmem_default)" -ge "$ROOM_TO_SEND" ] || want $NET/core/wmem_default "$ROOM_TO_SEND"
    [ "$(cat $NET/core/rmem_default)" -ge "$ROOM_TO_HEAR" ] || want $NET/core/rmem_default "$ROOM_TO_HEAR"
}

change_settings() {
    local i
    for ((i = 0; i < ${#SETTINGS[@]}; i += 3)); do
        echo "${SETTINGS[i + 1]}" >"${SETTINGS[i]}" || cannot "${SETTINGS[i]} cannot be changed"
    done
}

# --- main -----------------------------------------------------------------------------------------

if [ "${1-}" = --clean-up ]; then
    shift
    clean_up "$@"
    exit
fi
# This script ends when its parent is killed.
if [ -z "${FAIRQ_FRESH-}" ]; then
    FAIRQ_FRESH=1 exec setpriv --pdeathsig TERM "$SCRIPT" "$@" || cannot "no setpriv"
fi
what="demo tests"
suite=
while [ $# -gt 0 ]; do
    case $1 in
        --) shift; break ;;
        --tests) what=tests ;;
        --all) what="test-package tests" ;;
        --packages) what=packages ;;
        --suite) suite=${2:?--suite needs the name of a release}; shift ;;
        *) sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done

check
# One run at a time, because runs change settings of the machine.
exec 9<"$SCRIPT"
flock 9
directory=$(mktemp -d "${TMPDIR:-/var/tmp}/fairq-fresh.XXXXXX")
trap 'rm -rf "$directory"' EXIT
list_settings
# Job control, so that the commands below get Ctrl-C from this script only, and do not ignore it.
set -m
exec {alive}> >(exec setsid "$SCRIPT" --clean-up "$directory" "${SETTINGS[@]}")
cleaner=$!
inside=
# shellcheck disable=SC2329
finish() {
    [ -z "$inside" ] || { kill -KILL "$inside" && wait "$inside"; } 2>/dev/null || true
    exec {alive}>&-
    wait "$cleaner" || true
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
# Now that whatever ends this script has them restored.
change_settings

# The kernel kills unshare with this process, and everything inside with unshare.
setpriv --pdeathsig KILL unshare --mount --pid --ipc --uts --fork --kill-child --mount-proc \
    "$ROOT/scripts/test-fresh-inside.sh" "$directory" "$suite" "$what" "$@" </dev/null {alive}>&- &
inside=$!
code=0
wait "$inside" || code=$?
inside=
exit "$code"
