#!/usr/bin/env bash
# Makes the wheel of the Python package with all that Hone needs but glibc and Python: its libraries, and a linker. It is
# for the Python of build/venv, and from 3.12 on for later ones, too.
set -euo pipefail
usage="usage: scripts/make_wheel.sh [--build FOLDER] OUTPUT_FOLDER"
. "$(dirname "$0")/bundle.sh"
limit=$((90 << 20))  # bytes of a wheel
[[ $(uname -m) == x86_64 ]] || fail "this is $(uname -m), expected x86_64"
llvm=$(folder_of_llvm)
[[ -x $llvm/../bin/lld ]] || fail "no $llvm/../bin/lld: run scripts/setup.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
installed=$scratch/installed
stage=$scratch/prefix
cmake --install "$build" --prefix "$installed" >/dev/null
mkdir -p "$stage/lib"
cp -r "$installed/share" "$stage/"

library=$(readlink -f "$installed/lib/libhone.so")
add_program "$library" lib
mv "$stage/lib/${library##*/}" "$stage/lib/libhone.so"
programs=("$stage/lib/libhone.so")
add_program "$installed/libexec/hone/hone-worker" libexec/hone
add_program "$llvm/../bin/lld" libexec/hone
mv "$stage/libexec/hone/lld" "$stage/libexec/hone/ld.lld"
programs[-1]=$stage/libexec/hone/ld.lld
make_llvm "$llvm"
add_libraries

HONE_PREFIX=$installed HONE_BUNDLE=$stage build/venv/bin/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$scratch/wheel" ./python
mkdir -p "$output"
for wheel in "$scratch"/wheel/*.whl; do
  # The tag says what glibc it needs, for which pip then looks.
  glibc=$(objdump -T "$stage"/lib/*.so* "$stage"/libexec/hone/* | sed -n 's/.*GLIBC_2\.\([0-9]*\).*/\1/p' | sort -n | tail -1)
  tag=$(basename "$wheel" | sed "s/linux_x86_64/manylinux_2_${glibc}_x86_64/")
  build/venv/bin/python -m wheel tags --remove --platform-tag "manylinux_2_${glibc}_x86_64" "$wheel" >/dev/null
  size=$(stat -c %s "$scratch/wheel/$tag")
  ((size <= limit)) || fail "$tag has more than $((limit >> 20)) MiB"
  mv "$scratch/wheel/$tag" "$output/"
  echo "$output/$tag: $(((size + (1 << 20) - 1) >> 20)) MiB"
done
