#!/bin/sh
# Makes the groups, then enables and (re)starts the service, unless the administrator had disabled it. What prerm.sh held
# off for dpkg is allowed again, also where dpkg gives up. A service that does not start yet is tried again by systemd: the
# version is installed all the same.
set -e

allow_resets() {
    if nodeagent status 2>/dev/null | grep -q '^quiesced by dpkg'; then
        nodeagent resume --owner dpkg --reason "$1 of the package" >/dev/null || true
    fi
}

case "$1" in
configure) ;;
abort-*)
    allow_resets "$1"
    exit 0
    ;;
*) exit 0 ;;
esac

systemd-sysusers nodeagent.conf
if deb-systemd-helper --quiet was-enabled nodeagent.service; then
    deb-systemd-helper enable nodeagent.service >/dev/null
else
    deb-systemd-helper update-state nodeagent.service >/dev/null
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    if [ -n "$2" ]; then action=restart; else action=start; fi
    deb-systemd-invoke "$action" nodeagent.service ||
        echo "nodeagent: it does not start yet, and systemd goes on trying (journalctl -u nodeagent)" >&2
    allow_resets configure
    systemctl try-restart nodeagent-slurm.service # it is off unless somebody has enabled it
    systemctl try-restart 'nodeagent-export@*.service' || true # there may be none
fi
