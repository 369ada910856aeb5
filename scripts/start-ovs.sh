#!/usr/bin/env bash
# Starts Open vSwitch if it is not running; a running one is not changed, nor are its bridges.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
LOG=$ROOT/.setup.log
RUN_DIR=${OVS_RUNDIR:-/var/run/openvswitch}
CTL=/usr/share/openvswitch/scripts/ovs-ctl

# shellcheck source=scripts/lib.sh
. "$ROOT/scripts/lib.sh"

alive() {
    local pid
    pid=$(cat "$RUN_DIR/$1.pid" 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ]
}

running() { alive ovsdb-server && alive ovs-vswitchd && [ -S "$RUN_DIR/db.sock" ]; }

# ovs-vsctl returns when vswitchd has applied the (unchanged) configuration, which shows that it works.
answers() { run_logged "${AS_ROOT[@]}" ovs-vsctl --timeout=10 init; }

by_service() {
    if [ -d /run/systemd/system ]; then
        run_logged "${AS_ROOT[@]}" systemctl start openvswitch-switch && running
    else
        return 1
    fi
}

by_ovs_ctl() {
    [ -x "$CTL" ] || return 1
    run_logged "${AS_ROOT[@]}" "$CTL" start --system-id=random --no-mlockall && running
}

# Used without ovs-ctl, or if it fails because it cannot load the kernel module, which the userspace datapath
# does not need.
by_hand() {
    local etc=${OVS_SYSCONFDIR:-/etc}/openvswitch share=${OVS_PKGDATADIR:-/usr/share/openvswitch} log=/var/log/openvswitch
    run_logged "${AS_ROOT[@]}" mkdir -p "$etc" "$RUN_DIR" "$log" || return 1
    if [ ! -e "$etc/conf.db" ]; then
        run_logged "${AS_ROOT[@]}" ovsdb-tool create "$etc/conf.db" "$share/vswitch.ovsschema" || return 1
    fi
    alive ovsdb-server || run_logged "${AS_ROOT[@]}" ovsdb-server "$etc/conf.db" "--remote=punix:$RUN_DIR/db.sock" \
        --remote=db:Open_vSwitch,Open_vSwitch,manager_options \
        --pidfile --detach --no-chdir "--log-file=$log/ovsdb-server.log" -vconsole:off || return 1
    run_logged "${AS_ROOT[@]}" ovs-vsctl --no-wait --timeout=10 init || return 1
    alive ovs-vswitchd || run_logged "${AS_ROOT[@]}" ovs-vswitchd "unix:$RUN_DIR/db.sock" \
        --pidfile --detach --no-chdir "--log-file=$log/ovs-vswitchd.log" -vconsole:off || return 1
    running
}

# at_least KEY BYTES: raises a setting of the kernel if it is lower.
at_least() {
    local now
    now=$(sysctl -n "$1" 2>/dev/null) || return 0
    if [ "$now" -lt "$2" ]; then run_logged "${AS_ROOT[@]}" sysctl -w "$1=$2" || true; fi
}

# The userspace datapath sends all packets through one socket, whose buffer size is fixed when it is created: by
# default 90 packets for all ports together, less than the buffer of one port. It receives from each port through a
# socket of its own, whose buffer of 90 packets overflows while the datapath is busy. No queue counts these losses.
room_for_packets() {
    at_least net.core.wmem_default "$ROOM_TO_SEND"
    at_least net.core.rmem_default "$ROOM_TO_HEAR"
}

running && exit 0
need_root "to start Open vSwitch"
room_for_packets
say "starting Open vSwitch ..."
by_service || by_ovs_ctl || by_hand || die_log "Open vSwitch does not start"
answers || die_log "Open vSwitch started, but ovs-vsctl gets no answer"
