# shellcheck shell=bash
# How Python modules are got for the interpreter of the package. Expects ARCHITECTURE, as `uname -m` has it.

readonly VERSION_OF_PYTHON=3.13

# That of .venv also for other environments: to install one takes longer than all that it does for one.
pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }

# What pip has to know to choose files for an interpreter that does not run it.
for_target() {
    local tag
    for tag in linux_"$ARCHITECTURE" manylinux_2_{28,27,26,17,12,5}_"$ARCHITECTURE" manylinux{2014,2010,1}_"$ARCHITECTURE"; do
        printf -- '--platform=%s\n' "$tag"
    done
    printf '%s\n' --implementation=cp "--python-version=$VERSION_OF_PYTHON" --abi=cp313 --abi=abi3 --abi=none \
        --only-binary=:all:
}
