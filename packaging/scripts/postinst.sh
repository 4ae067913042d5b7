#!/bin/sh
# Makes the groups, then enables and (re)starts the service, unless the administrator had disabled it.
set -e

[ "$1" = configure ] || exit 0

systemd-sysusers nodeagent.conf
if deb-systemd-helper --quiet was-enabled nodeagent.service; then
    deb-systemd-helper enable nodeagent.service >/dev/null
else
    deb-systemd-helper update-state nodeagent.service >/dev/null
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    if [ -n "$2" ]; then
        deb-systemd-invoke restart nodeagent.service
    else
        deb-systemd-invoke start nodeagent.service
    fi
fi
