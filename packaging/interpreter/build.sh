#!/usr/bin/env bash
# build.sh ARCHITECTURE: makes the interpreter that the packages carry, for x86_64 or aarch64, and prints two folders: its
# own, and that of the compiler, for what else the packages hold. The interpreter is CPython with the libraries that it
# needs linked in, for glibc 2.28 and later, of Debian's sources with Debian's patches. Once made, it lies in the cache
# until a file of this folder changes. A build takes ten minutes on two cores; that for another architecture
# than this machine's needs this machine's first.
#
# build.sh --profile: makes profile.xz anew, which says where CPython spends its time (in its own tests); to be done for a new
# version of CPython or of the compiler. It needs Debian's packages llvm-19 and libclang-rt-19-dev, of the compiler's version.
#
# Sources come from the mirror that apt uses here, or from NODEAGENT_DEBIAN_MIRROR, and only by their digests. What is in
# the cache already is not fetched.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
readonly HERE
readonly GLIBC=2.28
readonly PYTHON=3.13
readonly PREFIX=/usr/lib/nodeagent/python
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/nodeagent-interpreter
readonly CACHE
readonly DOWNLOADS=$CACHE/downloads
MACHINE=$(uname -m)
readonly MACHINE
# Of what decides how the interpreter comes out; two versions of this folder can lie beside each other.
MADE_OF=$(cd "$HERE" && sha256sum -- * | sha256sum | cut -c1-16)
readonly MADE_OF
LOG=$CACHE/build.log
# shellcheck source=packaging/step.sh
. "$HERE/../step.sh"

folder_of() { echo "$CACHE/$MADE_OF/$1"; }

# --- what it is made of -----------------------------------------------------------------------------------------

mirror() {
    if [[ -n ${NODEAGENT_DEBIAN_MIRROR:-} ]]; then
        echo "${NODEAGENT_DEBIAN_MIRROR%/}"
        return
    fi
    # shellcheck disable=SC2016 # apt's own words
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n 's,^Debian \(.*/debian\)/$,\1,p' | head -n 1
}

# download FROM TO SHA256: by apt, which knows this machine's proxies, where there is one.
download() {
    if [[ -x /usr/lib/apt/apt-helper ]]; then
        /usr/lib/apt/apt-helper download-file "$1" "$2" "SHA256:$3"
    else
        curl --fail --location --silent --show-error --output "$2" "$1"
    fi
}

fetch_sources() {
    local from digest path
    mkdir -p "$DOWNLOADS"
    while read -r digest path; do
        [[ -f $DOWNLOADS/$path ]] && continue
        from=$(mirror) || true # there may be no apt here
        [[ -n $from ]] || die "apt names no mirror of Debian here: set NODEAGENT_DEBIAN_MIRROR, or put the files of" \
            "packaging/interpreter/sources.sha256 into $DOWNLOADS"
        mkdir -p "$DOWNLOADS/${path%/*}"
        download "$from/${path//+/%2b}" "$DOWNLOADS/$path.part" "$digest"
        sha256sum --check --quiet <<<"$digest  $DOWNLOADS/$path.part"
        mv "$DOWNLOADS/$path.part" "$DOWNLOADS/$path"
    done <"$HERE/sources.sha256"
    (cd "$DOWNLOADS" && sha256sum --check --quiet "$HERE/sources.sha256")
}

install_compiler() {
    rm -rf "$CACHE/$MADE_OF/compiler" # of one that was interrupted, which pip would take for a whole one
    "$HERE/../../.venv/bin/python" -m pip --disable-pip-version-check --no-input install --no-deps --require-hashes \
        --target "$CACHE/$MADE_OF/compiler" -r "$HERE/compiler.lock"
    make_compilers
}

# compiler_for ARCHITECTURE: a folder with the compiler under the names that configure scripts look for.
compiler_for() { echo "$CACHE/$MADE_OF/compiler-for-$1"; }

# The macros of dates are well defined by SOURCE_DATE_EPOCH. Nothing here is debugged: the file names of this machine stay out.
make_compilers() {
    local architecture tool zig bin
    zig="env ZIG_LOCAL_CACHE_DIR=$CACHE/zig ZIG_GLOBAL_CACHE_DIR=$CACHE/zig $CACHE/$MADE_OF/compiler/ziglang/zig"
    for architecture in x86_64 aarch64; do
        bin=$(compiler_for "$architecture")
        mkdir -p "$bin"
        for tool in cc c++; do
            printf '#!/bin/sh\nexec %s %s -target %s-linux-gnu.%s -fno-sanitize=undefined "$@" -g0 -Wno-date-time\n' \
                "$zig" "$tool" "$architecture" "$GLIBC" >"$bin/$tool"
        done
        for tool in ar ranlib; do
            printf '#!/bin/sh\nexec %s %s "$@"\n' "$zig" "$tool" >"$bin/$tool"
        done
        chmod +x "$bin"/*
    done
}

# unpack NAME FOLDER: the source of Debian's package with Debian's patches, but for those of patches-left-out. What is
# built of it says that it was when the source was made.
unpack() {
    local source=$2/$1 patch
    rm -rf "$source"
    mkdir -p "$source"
    tar --extract --directory "$source" --strip-components 1 --file "$(echo "$DOWNLOADS"/pool/main/*/"$1"/*.orig.tar.*)"
    tar --extract --directory "$source" --file "$(echo "$DOWNLOADS"/pool/main/*/"$1"/*.debian.tar.*)"
    cd "$source"
    [[ ! -f debian/patches/series ]] || while read -r patch _; do
        case $patch in '' | '#'*) continue ;; esac
        grep --quiet --line-regexp --fixed-strings "$1 $patch" "$HERE/patches-left-out" ||
            patch --silent --strip 1 --force --input "debian/patches/$patch"
    done <debian/patches/series
    SOURCE_DATE_EPOCH=$(date --date "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%s)
    export SOURCE_DATE_EPOCH
}

# --- the libraries ------------------------------------------------------------------------------------------------

# Each is built in its own folder of $BUILD and installed below $LIBRARIES, as an archive alone.
library_zlib() {
    env CHOST="$HOST" ./configure --static --prefix="$LIBRARIES"
    make -j"$JOBS" libz.a
    make install
}

library_bzip2() {
    make -j"$JOBS" libbz2.a CC="$CC" AR="$AR" RANLIB="$RANLIB" CFLAGS="$CFLAGS -D_FILE_OFFSET_BITS=64"
    install -D -t "$LIBRARIES/lib" libbz2.a
    install -D -t "$LIBRARIES/include" bzlib.h
}

library_xz-utils() {
    ./configure --build="$MACHINE-linux-gnu" --host="$HOST" --prefix="$LIBRARIES" --disable-shared --disable-xz \
        --disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-scripts --disable-doc --disable-nls
    make -j"$JOBS"
    make install
}

library_libffi() {
    autoreconf --install
    env CXX=false CXXCPP="$CC -E" ./configure --build="$MACHINE-linux-gnu" --host="$HOST" --prefix="$LIBRARIES" \
        --libdir="$LIBRARIES/lib" --disable-shared --disable-docs --disable-exec-static-tramp
    make -j"$JOBS"
    make install
}

# The one file of all its sources is made by tools of this machine.
library_sqlite3() {
    env CC=/usr/bin/gcc AR=/usr/bin/ar RANLIB=/usr/bin/ranlib ./configure --disable-tcl
    make CC=/usr/bin/gcc sqlite3.c
    # shellcheck disable=SC2086 # words on purpose
    "$CC" $CFLAGS -DSQLITE_THREADSAFE=1 -c sqlite3.c -o sqlite3.o
    mkdir -p "$LIBRARIES/lib"
    "$AR" rcs "$LIBRARIES/lib/libsqlite3.a" sqlite3.o
    install -D -t "$LIBRARIES/include" sqlite3.h sqlite3ext.h
}

library_openssl() {
    env -u CFLAGS ./Configure "linux-$ARCHITECTURE" no-shared no-tests no-docs no-apps no-legacy no-engine no-module \
        no-dso --prefix="$PREFIX" --libdir=lib --openssldir=/etc/ssl
    make -j"$JOBS" build_libs
    make install_dev DESTDIR="$PWD/installed" # the names of its folders stand in it
    cp --recursive "installed$PREFIX/." "$LIBRARIES"
}

# build_library NAME
build_library() {
    unpack "$1" "$BUILD"
    "library_$1"
}

# --- the interpreter ------------------------------------------------------------------------------------------------

configure_python() {
    local crossing=()
    if [[ $ARCHITECTURE != "$MACHINE" ]]; then
        # What configure would find out by running something.
        crossing=("--with-build-python=$(folder_of "$MACHINE")/bin/python$PYTHON"
            ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no ac_cv_buggy_getaddrinfo=no)
    fi
    export PKG_CONFIG=/bin/false CPPFLAGS="-I$LIBRARIES/include" LDFLAGS="-L$LIBRARIES/lib -s"
    export ZLIB_CFLAGS=$CPPFLAGS ZLIB_LIBS="-L$LIBRARIES/lib -lz" BZIP2_CFLAGS=$CPPFLAGS BZIP2_LIBS="-L$LIBRARIES/lib -lbz2"
    export LIBLZMA_CFLAGS=$CPPFLAGS LIBLZMA_LIBS="-L$LIBRARIES/lib -llzma" LIBFFI_CFLAGS=$CPPFLAGS LIBFFI_LIBS="-L$LIBRARIES/lib -lffi"
    export LIBSQLITE3_CFLAGS=$CPPFLAGS LIBSQLITE3_LIBS="-L$LIBRARIES/lib -lsqlite3 -lm"
    ./configure --build="$MACHINE-linux-gnu" --host="$HOST" --prefix="$PREFIX" --with-openssl="$LIBRARIES" \
        --disable-test-modules --without-ensurepip --without-static-libpython \
        --with-readelf=readelf READELF=readelf "${crossing[@]}"
}

build_python() {
    unpack python3.13 "$BUILD"
    CFLAGS=${CFLAGS/ -fPIC/} # the interpreter is a program, and slower by it; its modules get it anyhow
    xz --decompress --stdout "$HERE/profile.xz" >"$BUILD/profile"
    export CFLAGS_NODIST="-fprofile-use=$BUILD/profile -Wno-profile-instr-out-of-date -Wno-profile-instr-unprofiled"
    # LLVM 19 has one jump for all instructions of Python where it is not told otherwise (llvm-project, issue 106846).
    CFLAGS_NODIST+=" -mllvm -tail-dup-pred-size=5000"
    configure_python
    make -j"$JOBS"
    make install DESTDIR="$BUILD/installed"
}

# Makes CPython so that it counts what it does, and has it run those of its tests that its makers count by.
write_profile() {
    local counts=/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.profile-$MACHINE.a
    unpack python3.13 "$BUILD"
    mkdir -p "$BUILD/bin"
    printf '#!/bin/sh\ncase " $* " in *" -c "*) ;; *) set -- "$@" %s -Wl,-u,__llvm_profile_runtime ;; esac\nexec %s "$@"\n' \
        "$counts" "$(compiler_for "$MACHINE")/cc" >"$BUILD/bin/cc-that-counts"
    chmod +x "$BUILD/bin/cc-that-counts"
    configure_python
    make -j"$JOBS" CC="$BUILD/bin/cc-that-counts" PGO_PROF_GEN_FLAG=-fprofile-generate \
        LLVM_PROF_FILE="LLVM_PROFILE_FILE=$BUILD/counted-%p" \
        LLVM_PROF_MERGER="llvm-profdata-19 merge -output=$BUILD/profile $BUILD/counted-*" profile-run-stamp
    xz --force --keep "$BUILD/profile"
    mv "$BUILD/profile.xz" "$HERE"
}

# What neither the daemon nor anything of its packages uses; names of this machine go too.
trim() {
    local library=lib/python$PYTHON
    cd "$BUILD/installed$PREFIX"
    find . -name __pycache__ -prune -exec rm -r {} +
    rm -rf share lib/pkgconfig "$library"/config-* "$library"/{test,idlelib,tkinter,turtledemo,turtle.py,ensurepip,pydoc_data,lib2to3,venv}
    find bin -mindepth 1 ! -name "python$PYTHON" -delete
    sed --in-place "s,$BUILD,.,g" "$library"/_sysconfigdata_*.py
}

# begin ARCHITECTURE: the folder of a build with the libraries in it, and the variables of all functions above.
begin() {
    ARCHITECTURE=$1 HOST=$1-linux-gnu BUILD=$(folder_of "$1").building JOBS=$(nproc)
    LIBRARIES=$BUILD/libraries
    export CFLAGS="-O3 -fPIC -fomit-frame-pointer -ffile-prefix-map=$BUILD=." # frame pointers are Zig's own choice
    PATH=$(compiler_for "$1"):$PATH
    export PATH CC=cc CXX=c++ AR=ar RANLIB=ranlib
    rm -rf "$BUILD"
    mkdir -p "$BUILD"
    local name
    for name in zlib bzip2 xz-utils libffi sqlite3 openssl; do
        step "building $name for $1" build_library "$name"
    done
}

# build ARCHITECTURE
build() (
    begin "$1"
    step "building CPython for $1" build_python
    step "leaving out what nothing here uses" trim
    mv "$BUILD/installed$PREFIX" "$(folder_of "$1")"
    rm -rf "$BUILD"
)

profile() (
    begin "$MACHINE"
    step "building a CPython that counts, and running its tests" write_profile
    rm -rf "$BUILD"
)

get_what_is_needed() {
    step "fetching the sources" fetch_sources
    step "installing the compiler" install_compiler
}

main() {
    local architecture
    [[ $CACHE != *[[:space:]]* ]] || die "the cache $CACHE has a space in its name, which what is built there does not take:" \
        "set XDG_CACHE_HOME"
    alone "$CACHE"
    case ${1:-} in
    x86_64 | aarch64) ;;
    --profile)
        get_what_is_needed
        profile
        return
        ;;
    *) die "there is no interpreter for ${1:-nothing}; there are x86_64 and aarch64" ;;
    esac
    if [[ ! -d $(folder_of "$1") ]]; then
        say "the interpreter for $1 is not in $CACHE: it is built, which takes a while"
        get_what_is_needed
        for architecture in "$MACHINE" "$1"; do
            [[ -d $(folder_of "$architecture") ]] || build "$architecture"
        done
    fi
    printf '%s\n' "$(folder_of "$1")" "$(compiler_for "$1")"
}

main "$@"
