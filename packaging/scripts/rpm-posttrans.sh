#!/bin/sh
# After an installation or upgrade, when the files of the version before have gone: (re)starts the service, unless the
# administrator has disabled it and it does not run. What prerm.sh held off is allowed again. A service that does not start
# yet is tried again by systemd: the version is installed all the same.
set -e

# What explains the journal's entries. dpkg calls systemd for it; with rpm not every distribution's systemd has a trigger.
journalctl --update-catalog || true
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if systemctl --quiet is-enabled nodeagent.service || systemctl --quiet is-active nodeagent.service; then
    systemctl restart nodeagent.service ||
        echo "nodeagent: it does not start yet, and systemd goes on trying (journalctl -u nodeagent)" >&2
fi
if nodeagent status 2>/dev/null | grep -q '^quiesced by rpm'; then
    nodeagent resume --owner rpm --reason "upgrade of the package" >/dev/null || true
fi
systemctl try-restart nodeagent-slurm.service # it is off unless somebody has enabled it
systemctl try-restart 'nodeagent-export@*.service' || true # there may be none
