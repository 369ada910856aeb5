# shellcheck shell=bash
# Functions of all scripts here. The scripts set LOG, the file for the output of the commands that they run.

# Buffer sizes of the sockets of Open vSwitch's userspace datapath, bytes (see start-ovs.sh).
# shellcheck disable=SC2034
ROOM_TO_SEND=4194304
# shellcheck disable=SC2034
ROOM_TO_HEAR=1048576

say() { echo "setup: $*" >&2; }

die() {
    echo "setup: error: $*" >&2
    exit 1
}

# An error whose cause is in the log.
die_log() {
    tail -n 15 "$LOG" | sed 's/^/    /' >&2
    die "$* (everything: $LOG)"
}

# Starts an empty log.
open_log() {
    { : >"$LOG"; } 2>/dev/null || die "cannot write $LOG; if root made it, run this as root, or remove it"
}

run_logged() {
    printf '+ %s\n' "$*" >>"$LOG"
    "$@" >>"$LOG" 2>&1 </dev/null
}

# Sets AS_ROOT, the prefix that runs a command as root; $1: the purpose, for the error message. sudo must
# ask for its password before the output goes to the log.
# shellcheck disable=SC2034
need_root() {
    if [ "$(id -u)" -eq 0 ]; then
        AS_ROOT=(env)
    elif command -v sudo >/dev/null 2>&1 && sudo -v; then
        AS_ROOT=(sudo)
    else
        die "root is needed $1: run it as root, or install sudo and allow this user to use it"
    fi
}
