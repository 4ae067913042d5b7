#!/usr/bin/env bash
# build.sh [--all | --arch ARCHITECTURE]: builds an image for containers of the Debian packages in dist, for x86_64 or
# aarch64, by default for this machine; --all is one image for both. It holds the package's own files, the client of
# Kubernetes that the bridge needs, what the export of OpenTelemetry logs needs, and the few libraries of Debian that
# these need: no shell, no packager. The same
# commit and the same packages of Debian give the same bytes. It goes to dist as an OCI layout: a folder, and one file.
# Called by ./dev image, which has built the packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The newest stable release, whatever this machine runs: it gets fixes for longest.
readonly SUITE=trixie
# What the objects of the package need; base-files tells scanners which release these are of.
readonly LIBRARIES=base-files,libc6,libgcc-s1,libstdc++6,libsystemd0
# The user that pods have as a custom, and the bridge needs no other.
readonly NOBODY=65532
readonly BUILD=$PWD/build/image
readonly LOG=build/image.log
MACHINE=$(uname -m)
readonly MACHINE

# shellcheck source=packaging/step.sh
. packaging/step.sh
# shellcheck source=packaging/modules.sh
. packaging/modules.sh
readonly SITE=usr/lib/nodeagent/python/lib/python$VERSION_OF_PYTHON/site-packages
umask 022
export LC_ALL=C TZ=UTC PYTHONHASHSEED=0

# A storage of its own, without overlays and user namespaces: it also works in a container.
storage() { buildah --root "$BUILD/storage" --runroot "$BUILD/run" --storage-driver vfs "$@"; }

# Unpacked, and no script of theirs is run: so the architecture does not matter.
get_libraries() {
    local tree=$1 debian=$BUILD/$ARCHITECTURE/debian package name
    mmdebstrap --variant=extract --skip=cleanup --architectures="$ARCH" --include="$LIBRARIES" "$SUITE" "$debian"
    rm "$debian"/var/cache/apt/archives/mawk_* # a dependency of base-files' scripts alone
    mkdir -p "$tree"/{dev,etc,proc,run,sys,var/lib/dpkg/status.d}
    mkdir -m 1777 "$tree"/{,var/}tmp
    cd "$debian"
    cp -a --parents lib* usr/lib*/ld-* usr/lib/*-linux-gnu/*.so* etc/{os-release,debian_version} usr/lib/os-release \
        usr/share/common-licenses "$tree"
    # As distroless images have it: here scanners look for what has known holes.
    for package in var/cache/apt/archives/*.deb; do
        name=$(dpkg-deb --field "$package" Package)
        dpkg-deb --field "$package" >"$tree/var/lib/dpkg/status.d/$name"
        cp -a --parents "usr/share/doc/$name/copyright" "$tree"
    done
    printf 'root:x:0:0::/:\nnodeagent:x:%s:%s::/:\n' "$NOBODY" "$NOBODY" >"$tree/etc/passwd"
    printf 'root:x:0:\nnodeagent:x:%s:\n' "$NOBODY" >"$tree/etc/group"
    printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$tree/etc/nsswitch.conf"
}

# What these locks have and the package does not, each once.
get_modules() {
    local site=$1/$SITE lock=$BUILD/$ARCHITECTURE/modules.lock target
    mapfile -t target < <(for_target)
    awk 'NR == FNR { if (/^[a-z]/) got[$1]; next } /^[a-z]/ { ours = !($1 in got); got[$1] } ours' \
        packaging/runtime.lock packaging/kubernetes.lock packaging/otlp.lock >"$lock"
    pip install --target "$site" --require-hashes --no-deps --no-compile "${target[@]}" -r "$lock"
    rm -rf "${site:?}"/{bin,include,share}
    # The bridge writes its requests itself. It uses the client's connection and account, and none of a thousand classes.
    rm "$site"/kubernetes/{,aio/}client/{api,models}/[!_]*.py
    "$NATIVE" -B -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$1" -p / "$site"
}

# All of the package but what is for a system that is booted and for people who log in.
get_package() {
    dpkg-deb --fsys-tarfile "dist/nodeagent_${VERSION}_$ARCH.deb" | tar --extract --directory "$1" \
        --exclude='./usr/lib/'{'sys*',tmpfiles.d} --exclude='./usr/share/'{man,fish,zsh,bash-completion,lintian} \
        --exclude='./usr/share/doc/nodeagent/'{docs,examples,packaging,'*.md'}
}

# add_layer BASE NAME WORDS TREE TIME [OPTION...]: with these options of buildah config.
add_layer() {
    local container
    container=$(storage from --pull-never --arch "$ARCH" "$1")
    storage add --quiet --chown 0:0 "$container" "$4" /
    storage config --arch "$ARCH" --os linux --created-by "$3" "${@:6}" "$container"
    storage commit --quiet --rm --identity-label=false --timestamp "$5" "$container" "$2"
}

# What changes with each version comes last: a node that has another version gets only this.
make_image() {
    local trees=$BUILD/$ARCHITECTURE of_libraries of_modules
    of_libraries=$(find "$trees/libraries/usr/lib" -type f -printf '%Ts\n' | sort -n | tail -n 1)
    of_modules=$(git log -1 --format=%ct packaging/{kubernetes,otlp}.lock 2>/dev/null || echo "$SOURCE_DATE_EPOCH")
    add_layer scratch "libraries-$ARCH" "libraries of Debian $SUITE" "$trees/libraries" "$of_libraries"
    add_layer "libraries-$ARCH" "modules-$ARCH" "Python modules for the bridge to Kubernetes and the export to OpenTelemetry" \
        "$trees/modules" "$of_modules"
    add_layer "modules-$ARCH" "nodeagent-$ARCH" "nodeagent $VERSION" "$trees/nodeagent" "$SOURCE_DATE_EPOCH" \
        --entrypoint '["/usr/lib/nodeagent/bin/nodeagent"]' --user "$NOBODY:$NOBODY" --env PATH=/usr/sbin:/usr/bin \
        --annotation org.opencontainers.image.base.name- --annotation org.opencontainers.image.base.digest- \
        "${LABELS[@]}"
}

pack() {
    local layout=dist/nodeagent-$VERSION.oci architecture
    rm -rf "$layout" "$layout.tar"
    storage manifest create nodeagent
    for architecture; do
        storage manifest add nodeagent "localhost/nodeagent-$architecture"
    done
    storage manifest push --all nodeagent "oci:$layout:$VERSION"
    tar --create --file "$layout.tar" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
        --numeric-owner --mode=u=rwX,go=rX --directory "$layout" blobs index.json oci-layout
}

set_variables() {
    local created
    VERSION=$(.venv/bin/python -c 'import nodeagent; print(nodeagent.__version__)')
    SOURCE_DATE_EPOCH=$(date_of_sources)
    created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
    LABELS=()
    local label
    for label in title=nodeagent description="Fault detection for AI nodes" licenses=Apache-2.0 version="$VERSION" \
        revision="$(git rev-parse HEAD 2>/dev/null)" created="$created"; do
        LABELS+=(--label "org.opencontainers.image.$label")
    done
    export SOURCE_DATE_EPOCH
    readonly VERSION SOURCE_DATE_EPOCH LABELS
}

architectures=("$MACHINE")
while (($#)); do
    case $1 in
    --arch)
        [[ ${2:-} = x86_64 || ${2:-} = aarch64 ]] || die "there is no image for ${2:-nothing}; there are x86_64 and aarch64"
        architectures=("$2")
        shift
        ;;
    --all) architectures=(x86_64 aarch64) ;;
    *) die "usage: build.sh [--all | --arch ARCHITECTURE]" ;;
    esac
    shift
done
set_variables
{ read -r NATIVE; } < <(packaging/interpreter/build.sh "$MACHINE")
readonly NATIVE=$NATIVE/bin/python$VERSION_OF_PYTHON

alone build
rm -rf "$BUILD"
names=()
for ARCHITECTURE in "${architectures[@]}"; do
    ARCH=$(go_name "$ARCHITECTURE")
    [[ -r dist/nodeagent_${VERSION}_$ARCH.deb ]] || die "dist lacks the Debian package for $ARCHITECTURE: ./dev image builds it, too"
    mkdir -p "$BUILD/$ARCHITECTURE"/{libraries,modules,nodeagent}
    step "getting the libraries for $ARCHITECTURE" get_libraries "$BUILD/$ARCHITECTURE/libraries"
    step "getting the client of Kubernetes and the exporter of OpenTelemetry" get_modules "$BUILD/$ARCHITECTURE/modules"
    step "unpacking the package" get_package "$BUILD/$ARCHITECTURE/nodeagent"
    step "making the image for $ARCHITECTURE" make_image
    names+=("$ARCH")
done
step "packing the image" pack "${names[@]}"
rm -rf "$BUILD"
printf '==> built %s\n' "dist/nodeagent-$VERSION.oci"{,.tar} >&2
