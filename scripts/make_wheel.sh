#!/usr/bin/env bash
# Makes the wheel of the Python package with all that Hone needs but glibc and Python: its libraries, and a linker. It is
# for the Python of build/venv, and from 3.12 on for later ones, too.
set -euo pipefail
usage="usage: scripts/make_wheel.sh [--build FOLDER] OUTPUT_FOLDER"
. "$(dirname "$0")/bundle.sh"
limit=$((90 << 20))  # bytes of a wheel
llvm=$(folder_of_llvm)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
installed=$scratch/installed
stage=$scratch/prefix
cmake --install "$build" --prefix "$installed" >/dev/null
mkdir -p "$stage/lib"
cp -r "$installed/share" "$stage/"

add_program "$installed/lib/libhone.so" lib
add_program "$installed/lib/libhone_onnxruntime_ep.so" lib
add_program "$installed/libexec/hone/hone-worker" libexec/hone
add_linker "$llvm"
make_llvm "$llvm"
add_libraries

HONE_PREFIX=$installed HONE_BUNDLE=$stage build/venv/bin/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$scratch/wheel" ./python
# The tag says what glibc it needs, for which pip then looks.
name=$(build/venv/bin/python -m wheel tags --remove --platform-tag "manylinux_2_$(needed_glibc)_x86_64" "$scratch"/wheel/*.whl)
size=$(stat -c %s "$scratch/wheel/$name")
((size <= limit)) || fail "$name has more than $((limit >> 20)) MiB"
mkdir -p "$output"
mv "$scratch/wheel/$name" "$output/"
echo "$output/$name: $(((size + (1 << 20) - 1) >> 20)) MiB"
