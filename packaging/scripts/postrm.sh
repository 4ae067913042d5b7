#!/bin/sh
# Forgets the service; a purge, which only dpkg knows, also removes what the daemon and its resets wrote. The groups stay:
# files may still belong to them. rpm's word for a removal is 0, and 1 for the old version of an upgrade.
set -e

if { [ "$1" = remove ] || [ "$1" = 0 ]; } && [ -d /run/systemd/system ]; then
    for socket in nodeagent-reset.socket nodeagent-ascend.socket; do
        systemctl stop "$socket" 2>/dev/null || true # it was never started
    done
    systemctl daemon-reload
    rm -rf /run/nodeagent /run/nodeagent-reset /run/nodeagent-ascend
fi
if [ "$1" = purge ]; then
    if command -v deb-systemd-helper >/dev/null; then
        deb-systemd-helper purge nodeagent.service nodeagent-slurm.service >/dev/null
    fi
    rm -rf /var/lib/nodeagent /var/lib/nodeagent-reset /var/lib/nodeagent-export /var/cache/nodeagent
fi
