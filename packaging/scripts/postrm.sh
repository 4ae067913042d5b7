#!/bin/sh
# Forgets the service; a purge also removes what the daemon and its resets wrote. The groups stay: files may still
# belong to them.
set -e

if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
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
    rm -rf /var/lib/nodeagent /var/lib/nodeagent-reset /var/cache/nodeagent
fi
