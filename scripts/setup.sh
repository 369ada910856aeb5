#!/usr/bin/env bash
# Installs everything that is missing to run fairq_ryu on Debian 12 or newer: system packages, the .venv, the
# eBPF objects and the delay line, a running Open vSwitch. It is written for Ubuntu 22.04 and newer as well, but was
# not run there. It can be repeated: existing parts are not changed, and a call with nothing to do takes less than a
# second. Nothing is downloaded after set-up.
#
#   scripts/setup.sh                  what running needs
#   scripts/setup.sh --dev            also what the tests and linters need
#   scripts/setup.sh [--dev] --no-ovs the same, but Open vSwitch is not started
#   scripts/setup.sh --bpf            only the eBPF objects and the delay line
#   scripts/setup.sh --print-missing  the Debian packages it would install, one a line; changes nothing
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
# The PATH of a plain user lacks the sbin directories, which contain half of these tools.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

VENV=$ROOT/.venv
BPF_DIR=$ROOT/fairq_ryu/agent/bpf
BPF_DIRS=("$BPF_DIR" "$ROOT/fairq_ryu/experiments/hostcc/bpf" "$ROOT/fairq_ryu/laws")
DELAYLINE=$ROOT/mininet_topos/delayline/delayline
LOG=$ROOT/.setup.log

# shellcheck source=scripts/lib.sh
. "$ROOT/scripts/lib.sh"

# --- which Python -----------------------------------------------------------------------------

# The distribution's own Python (never one from PATH: pyenv's or conda's cannot see the system's
# mininet). Prints its path, or nothing when the distribution's is older than 3.11 or absent.
system_python() {
    local candidate
    for candidate in /usr/bin/python3 /usr/bin/python3.1[1-9]; do
        if [ -x "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

# --- system packages --------------------------------------------------------------------------

have() { command -v "$1" >/dev/null 2>&1; }

have_libbpf() { compgen -G '/usr/lib/*/libbpf.so.[01]' >/dev/null || compgen -G '/usr/lib*/libbpf.so.[01]' >/dev/null; }

# The packages of the missing programs of fairq_ryu/config/programs.txt; $1: the purposes to consider.
missing_programs() {
    local name package purpose
    while read -r name package purpose _; do
        case " $1 " in
            *" $purpose "*) have "$name" || echo "$package" ;;
        esac
    done < <(sed 's/#.*//' "$ROOT/fairq_ryu/config/programs.txt")
}

# Ubuntu distributes the browser of the tests as snaps with other names.
names_here() {
    if grep -qs '^ID=ubuntu$' /etc/os-release; then
        sed "s/^chromium$/$(have chromium-browser || echo chromium-browser)/; s/^chromium-driver$/chromium-chromedriver/; /^$/d"
    else
        cat
    fi
}

# Checks for programs and files and not for packages, so that an Open vSwitch or clang that was installed in
# another way is used.
missing_packages() {
    local python
    missing_programs "run build$([ "$dev" = no ] || echo " test")" | names_here
    compgen -G '/usr/lib/python3*/dist-packages/mininet' >/dev/null || echo mininet
    { [ -e /usr/include/bpf/bpf_helpers.h ] && have_libbpf; } || echo libbpf-dev
    [ -e /usr/include/linux/bpf.h ] || echo linux-libc-dev
    python=$(system_python)
    if [ -z "$python" ] && [ ! -x /usr/bin/python3 ]; then
        echo python3
        echo python3-venv
    elif [ -z "$python" ]; then
        # Ubuntu 22.04: python3 is 3.10, and python3.11 is a package of its own.
        echo python3.11
        echo python3.11-venv
    elif [ ! -x "$VENV/bin/python" ] && ! "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    fi
}

install_packages() {
    local missing
    mapfile -t missing < <(missing_packages | awk '!seen[$0]++')
    [ "${#missing[@]}" -gt 0 ] || return 0
    have apt-get || die "missing: ${missing[*]}; only apt is known here: install these by your own package manager and run it again"
    need_root "to install ${missing[*]}"
    say "system packages ${missing[*]} ..."
    run_logged "${AS_ROOT[@]}" apt-get update -q \
        || die_log "apt-get update failed; check the network and /etc/apt, then run it again"
    # At most twice: whether python3 is too old is known only after its installation.
    for _ in 1 2; do
        # Without recommended packages: one of mininet's is a controller that would use port 6653.
        run_logged "${AS_ROOT[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" \
            || die_log "apt-get install ${missing[*]} failed; on Ubuntu, enable universe and the -updates suite in /etc/apt, then run it again"
        mapfile -t missing < <(missing_packages | awk '!seen[$0]++')
        [ "${#missing[@]}" -gt 0 ] || break
    done
    [ "${#missing[@]}" -eq 0 ] || die_log "installed, yet still missing: ${missing[*]}"
}

# --- the .venv --------------------------------------------------------------------------------

# Each fingerprint contains the checkout's path, because a .venv does not work after it was copied or moved.
fingerprint() { { echo "$ROOT"; "$@"; } | sha256sum | cut -d' ' -f1; }

fresh() { [ -e "$1" ] && [ "$(cat "$1")" = "$2" ]; }

runtime_inputs() {
    readlink -f "$PYTHON"
    "$PYTHON" -V
    cat requirements-build.lock requirements.lock
}

# What setup.py itself reads of the sources: a new or renamed policy is a new entry point.
own_inputs() {
    cat setup.py
    "$PYTHON" -B -c 'import setup; print(setup.read_version(), *setup.own_policies(), sep="\n")'
}

pip() { "$VENV/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }

# Installs exactly the files whose hashes are in a lock: no other release, no file that was changed, and nothing that
# an index offers in their place. What is built is built with the tools of requirements-build.lock.
install_locked() { # LOCK [OPTIONS...]
    local lock=$1
    shift
    # CC=false: ovs has an optional C part that would link any libopenvswitch it finds; the pure Python part is
    # the same everywhere, and no other package compiles anything.
    CC=/bin/false run_logged pip install -q --no-deps --require-hashes --no-build-isolation "$@" -r "$lock" \
        || die_log "installing $lock failed"
}

install_runtime() {
    local stamp=$VENV/.stamp-runtime want
    want=$(fingerprint runtime_inputs)
    fresh "$stamp" "$want" && return 0
    say "Python packages into .venv ..."
    # Stamps are removed first, so that an interrupted installation does not count as complete.
    rm -f "$VENV"/.stamp-*
    rm -rf "$VENV"
    # First a .venv without the system's packages, so that pip installs every pinned package into it and does
    # not accept an older one of the system; then the system's packages are enabled for mininet.
    run_logged "$PYTHON" -m venv "$VENV" || die_log "$PYTHON -m venv failed; try: apt-get install python3-venv"
    install_locked requirements-build.lock
    install_locked requirements.lock
    run_logged "$PYTHON" -m venv --system-site-packages --without-pip "$VENV" || die_log "opening .venv for mininet failed"
    run_logged "$VENV/bin/python" -c 'import mininet.net, ryu.ofproto.ofproto_v1_3_parser, ryu.app.wsgi, ovs.db.idl' \
        || die_log "the .venv does not work: mininet, ryu and ovs must all import in it"
    echo "$want" >"$stamp"
}

install_own() {
    local stamp=$VENV/.stamp-own want
    want=$(fingerprint own_inputs)
    fresh "$stamp" "$want" && return 0
    run_logged pip install -q --no-deps --no-build-isolation -e . || die_log "installing fairq_ryu into .venv failed"
    echo "$want" >"$stamp"
}

install_dev() {
    local stamp=$VENV/.stamp-dev want
    want=$(fingerprint cat requirements-dev.lock)
    fresh "$stamp" "$want" && return 0
    say "test and lint tools into .venv ..."
    # --ignore-installed: a system pytest of the same version would leave no .venv/bin/pytest.
    install_locked requirements-dev.lock --ignore-installed
    echo "$want" >"$stamp"
}

# --- eBPF objects -----------------------------------------------------------------------------

bpf_arch() {
    case $(uname -m) in
        x86_64) echo x86 ;;
        aarch64) echo arm64 ;;
        riscv64) echo riscv ;;
        ppc64le) echo powerpc ;;
        s390x) echo s390 ;;
        *) die "no eBPF target known for $(uname -m)" ;;
    esac
}

bpf_inputs() {
    clang --version
    uname -m
    cat "$ROOT/scripts/setup.sh"
    find "${BPF_DIRS[@]}" -name '*.[ch]' -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 -r sha256sum
}

# Whether each given source has its object. If a source has the same content and a newer date, as after a
# checkout, its object gets the same date, so that dates still show which objects are out of date.
all_objects() {
    local source object
    for source in "$@"; do
        object=${source%.c}.o
        [ -e "$object" ] || return 1
    done
    for object in "${@/%.c/.o}"; do
        [ -z "$(find "${BPF_DIRS[@]}" -name '*.[ch]' -newer "$object" -print -quit)" ] || touch "$object"
    done
}

compile_bpf() {
    local stamp=$BPF_DIR/.stamp-bpf want source object sources=()
    mapfile -t sources < <(for directory in "${BPF_DIRS[@]}"; do compgen -G "$directory/*.bpf.c" || true; done)
    [ "${#sources[@]}" -gt 0 ] || return 0
    run_logged "$(system_python)" -B -m fairq_ryu.agent.law_header "$BPF_DIR/generated" || die_log "the header of the laws could not be generated"
    want=$(fingerprint bpf_inputs)
    if fresh "$stamp" "$want" && all_objects "${sources[@]}"; then
        return 0
    fi
    rm -f "$stamp" # until all are those of these sources
    say "eBPF programs ..."
    for source in "${sources[@]}"; do
        object=${source%.c}.o
        # Into a temporary file first, so that an interrupted compiler leaves no incomplete object.
        # (BPF_PROG declares parameters that a program need not use.)
        run_logged clang -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror "-D__TARGET_ARCH_$(bpf_arch)" \
            "-I/usr/include/$(uname -m)-linux-gnu" "-I$BPF_DIR/generated" -c "$source" -o "$object.tmp" || die_log "clang could not compile ${source#"$ROOT"/}"
        # Drops DWARF, keeps BTF.
        run_logged llvm-strip -g "$object.tmp" || die_log "llvm-strip failed on ${object#"$ROOT"/}"
        mv "$object.tmp" "$object"
    done
    echo "$want" >"$stamp"
}

# --- the delay line -----------------------------------------------------------------------------

delayline_inputs() {
    clang --version
    uname -m
    cat "$ROOT/scripts/setup.sh" "$DELAYLINE.c"
}

# The program that delays frames in Mininet's links (`rtt`); an ordinary program, not eBPF.
compile_delayline() {
    local stamp=${DELAYLINE%/*}/.stamp-delayline want
    want=$(fingerprint delayline_inputs)
    fresh "$stamp" "$want" && [ -x "$DELAYLINE" ] && return 0
    say "delay line ..."
    run_logged clang -O2 -Wall -Wextra -Werror "$DELAYLINE.c" -o "$DELAYLINE.tmp" \
        || die_log "clang could not compile ${DELAYLINE#"$ROOT"/}.c"
    mv "$DELAYLINE.tmp" "$DELAYLINE"
    echo "$want" >"$stamp"
}

# --- main -------------------------------------------------------------------------------------

dev=no
start=yes
while [ $# -gt 0 ]; do
    case $1 in
        --dev) dev=yes ;;
        --no-ovs) start=no ;;
        --bpf) open_log; compile_bpf; compile_delayline; exit ;;
        --print-missing) missing_packages | awk '!seen[$0]++'; exit ;;
        *) sed -n '2,11s/^# \{0,1\}//p' "$ROOT/scripts/setup.sh" >&2; exit 2 ;;
    esac
    shift
done

# An interrupted step is repeated by the next call, because stamps are written last.
trap 'echo >&2; die "interrupted; the next call carries on"' INT TERM
open_log
# Two simultaneous calls would write to the same .venv.
exec 9>"$ROOT/.setup.lock"
flock 9
install_packages
PYTHON=$(system_python)
install_runtime
install_own
[ "$dev" = no ] || install_dev
compile_bpf
compile_delayline
[ "$start" = no ] || "$ROOT/scripts/start-ovs.sh" 9>&-
