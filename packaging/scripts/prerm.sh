#!/bin/sh
# Stops the service before its files go; an upgrade restarts it afterwards instead.
set -e

if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop nodeagent.service
fi
