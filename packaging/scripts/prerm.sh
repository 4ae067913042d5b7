#!/bin/sh
# Stops the service before its files go; an upgrade restarts it afterwards instead. A reset that is under way runs from
# these files, and half of one leaves a node worse than before: it is waited for.
set -e

for lock in /run/nodeagent/reset/*.lock; do
    [ -e "$lock" ] || continue
    # Longer than any reset takes that ends at all.
    flock --timeout 2700 "$lock" true || echo "nodeagent: a reset that does not end still holds $lock" >&2
done
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop nodeagent.service
fi
