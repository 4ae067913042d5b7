#!/bin/sh
# Makes the groups. The first version that is installed (rpm's word for it is 1) also enables the service, unless a preset
# of the site says otherwise (systemd.preset). rpm-posttrans.sh starts it.
set -e

systemd-sysusers nodeagent.conf
if [ "$1" = 1 ]; then
    systemctl --no-reload --quiet preset nodeagent.service
fi
