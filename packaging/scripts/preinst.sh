#!/bin/sh
# Before anything of this version is put in place: a store that a newer version has written is not for this one, which
# would go on without it. Where this fails, dpkg and rpm have changed nothing, and the version before runs on.
#
# dpkg says in a word what it does, and rpm how many versions will be there, 1 or 2.
set -e

# SCHEMA_VERSION of nodeagent/store/layout.py, which a test compares.
KNOWN_SCHEMA=3

say() { echo "nodeagent: $*" >&2; }

# By the site's configuration, as far as that can be read without a parser.
state_dir() {
    sed -n "s/^[[:space:]]*\(agent\.\)\{0,1\}state_dir[[:space:]]*=[[:space:]]*[\"']\([^\"']*\)[\"'].*/\2/p" \
        /etc/nodeagent/nodeagent.toml /etc/nodeagent/nodeagent.d/*.toml 2>/dev/null | tail -n 1
}

# What the header of an SQLite file says, in its bytes 60 to 63 (sqlite.org/fileformat2.html); 0 where there is none. One
# that cannot be is damage, which the daemon mends.
schema_of() {
    if [ ! -f "$1" ] || [ "$(head -c 15 "$1" 2>/dev/null)" != "SQLite format 3" ]; then echo 0 && return; fi
    # shellcheck disable=SC2046 # four numbers
    set -- $(od -A n -j 60 -N 4 -t u1 "$1" 2>/dev/null)
    if [ $# -ne 4 ] || [ "$1" -gt 127 ]; then echo 0; else echo $((($1 << 24) + ($2 << 16) + ($3 << 8) + $4)); fi
}

check_store() {
    folder=$(state_dir)
    folder=${folder:-/var/lib/nodeagent}
    schema=$(schema_of "$folder/store.db")
    [ "$schema" -gt "$KNOWN_SCHEMA" ] || return 0
    say "$folder/store.db was written by a newer nodeagent: it has schema $schema, and this version knows $KNOWN_SCHEMA."
    say "Nothing has been changed. Install that version again, or a later one. To use this version without the"
    say "isolations, pending resets, history and positions of subscribers in that store, move it away first:"
    say "  systemctl stop nodeagent && mv $folder $folder.newer"
    return 1
}

case "$1" in
install | upgrade | 1 | 2) check_store ;;
esac
