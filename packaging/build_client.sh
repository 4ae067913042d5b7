#!/usr/bin/env bash
# build_client.sh PYTHON DIRECTORY: builds the wheel of nodeagent-client there. PYTHON has pip and setuptools
# (packaging/build.lock); the protobuf code has been generated.
set -euo pipefail
PYTHON=$1
DIRECTORY=$(realpath -m "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# setuptools packs what it finds in its build folder, also what the sources have no more, and two may build at once.
printf '[build]\nbuild_base = %s/build\n' "$scratch" >"$scratch/setup.cfg"
DIST_EXTRA_CONFIG=$scratch/setup.cfg "$PYTHON" -m pip --disable-pip-version-check --no-input wheel \
    --no-deps --no-build-isolation --wheel-dir "$DIRECTORY" packaging/client
