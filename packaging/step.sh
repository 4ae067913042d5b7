# shellcheck shell=bash
# For the scripts that build and set up. Expects LOG, the file for the words of the current step.

say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf 'failed: %s\n' "$*" >&2
    exit 1
}

# go_name ARCHITECTURE: as nfpm, Debian and OCI name what `uname -m` does.
go_name() {
    case $1 in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    esac
}

# date_of_sources: when the commit was made, in seconds; where there is one, git's own words say why it cannot be read.
date_of_sources() { if [[ -e .git ]]; then git log -1 --format=%ct; else echo "${SOURCE_DATE_EPOCH:-$(date +%s)}"; fi; }

# alone FOLDER: waits until no other script works in it, and keeps others waiting until this one ends.
alone() {
    mkdir -p "$1"
    exec {ALONE}>"$1/lock"
    flock --nonblock "$ALONE" || { say "another build works in $1: waiting for it" && flock "$ALONE"; }
}

# step WHAT COMMAND...: one line for people; the command's own words only when it fails.
step() {
    local what=$1 status
    shift
    say "$what"
    mkdir -p "${LOG%/*}"
    # Not as a condition: inside one, a function would run on after its first failure.
    set +e
    (
        set -e
        "$@"
    ) >"$LOG" 2>&1 </dev/null
    status=$?
    set -e
    if ((status)); then
        printf 'the last lines of %s:\n' "$LOG" >&2
        tail -n 25 "$LOG" | sed 's/^/    /' >&2
        die "$what (status $status)"
    fi
}
