#!/bin/sh
# Before the package's files go: no reset begins any more, and one that is under way, which runs from these files, is
# waited for. Half a reset leaves a node worse than before: where it does not end in time, nothing is removed.
# A removal stops the service too; an upgrade restarts it afterwards. postinst.sh and rpm-posttrans.sh allow resets
# again after an upgrade, and postinst.sh also where dpkg gives up.
#
# dpkg says in a word what it does. rpm says how many versions will be there: 0 before a removal; 2 before an upgrade, to
# the new version; 1 before a first installation, and in an upgrade to the old version, when its files have gone already.
set -e

# Longer than a reset takes that ends at all: two waits for its chips of 3 min at most, and its hooks.
LIMIT_S=${NODEAGENT_RESET_LIMIT_S:-900}
REPORT_EACH_S=30

say() { echo "nodeagent: $*" >&2; }

# Where no daemon answers none can begin. It ends by itself, should nobody be left to resume.
hold_off_resets() {
    nodeagent quiesce --owner "$manager" --reason "$action of the package" --for 1h >&2 ||
        say "no daemon answers the order to begin no reset; the $action continues"
}

# The lock of a reset that is under way; nothing where there is none.
held_lock() {
    for lock in /run/nodeagent/reset_unit/*.lock; do
        if [ -e "$lock" ] && ! flock --nonblock "$lock" true; then
            echo "$lock"
            return
        fi
    done
}

# wait_for_resets SECONDS
wait_for_resets() {
    begun_s=$(date +%s)
    reported_s=-$REPORT_EACH_S
    while lock=$(held_lock) && [ -n "$lock" ]; do
        waited_s=$(($(date +%s) - begun_s))
        if [ "$waited_s" -ge "$1" ]; then
            say "a reset is under way and still holds $lock: try again when it has ended (nodeagent status)"
            return 1
        fi
        if [ $((waited_s - reported_s)) -ge "$REPORT_EACH_S" ]; then
            say "waiting for a reset that is under way: $lock; $waited_s s so far, $1 s at most"
            reported_s=$waited_s
        fi
        flock --timeout 1 "$lock" true || true
    done
}

# Schedulers hear from nobody any more what is to take no work.
tell_isolations() {
    kept=$(nodeagent status 2>/dev/null | grep -E '^(isolated|promoted): ') || return 0
    say "out of service here, and nobody keeps work away from it once nodeagent is removed:"
    echo "$kept" | sed 's/^/nodeagent:   /' >&2
    say "it is out of service again once nodeagent is installed again, unless /var/lib/nodeagent is deleted"
}

case "$1" in
1) exit 0 ;;
0) manager=rpm action=remove ;;
2) manager=rpm action=upgrade ;;
*) manager=dpkg action=$1 ;;
esac
if [ "$action" = failed-upgrade ]; then
    wait_for_resets 0 # the version before has waited already
else
    hold_off_resets
    if ! wait_for_resets "$LIMIT_S"; then
        if [ "$manager" = rpm ]; then # it calls nothing where it gives up
            nodeagent resume --owner rpm --reason "$action given up" >/dev/null || true
        fi
        exit 1
    fi
fi
[ "$action" != remove ] || tell_isolations
case "$manager-$action" in
dpkg-remove)
    if [ -d /run/systemd/system ]; then
        systemctl stop 'nodeagent-export@*.service' || true # there may be none
        deb-systemd-invoke stop nodeagent-slurm.service nodeagent.service
    fi
    ;;
rpm-remove)
    systemctl --no-reload --quiet disable nodeagent-slurm.service nodeagent.service || true # masked ones cannot be
    if [ -d /run/systemd/system ]; then
        systemctl stop 'nodeagent-export@*.service' || true
        systemctl stop nodeagent-slurm.service nodeagent.service
    fi
    ;;
esac
