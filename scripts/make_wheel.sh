#!/usr/bin/env bash
# Makes the wheel of the Python package with all that Hone needs but glibc and Python: its libraries, and a linker. It is
# for the Python of build/venv or for those that are named, which get the tools that they build with from PyPI. A wheel
# of Python 3.12 or a later one is for all later ones, too.
set -euo pipefail
usage="usage: scripts/make_wheel.sh [--python PYTHON]... [--build FOLDER] OUTPUT_FOLDER"
pythons=()
while [[ ${1:-} == --python && $# -gt 2 ]]; do pythons+=("$(realpath -s "$(command -v "$2")")"); shift 2; done
. "$(dirname "$0")/bundle.sh"
limit=90000000  # bytes of a wheel
llvm=$(folder_of_llvm)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
installed=$scratch/installed
stage=$scratch/prefix
cmake --install "$build" --prefix "$installed" >/dev/null
mkdir -p "$stage/lib"
cp -r "$installed/share" "$stage/"

add_program "$installed/bin/hone" bin
add_program "$installed/lib/libhone.so" lib
add_program "$installed/lib/libhone_onnxruntime_ep.so" lib
add_program "$installed/libexec/hone/hone-worker" libexec/hone
add_server
rm -rf "$stage/share/hone/boards"  # what `hone deploy` copies, which is no part of the package
add_linker "$llvm"
make_llvm "$llvm"
# Trees are trained by this library, which Hone loads by its name.
xgboost=$(ldconfig -p | sed -n 's/.*libxgboost\.so\.0 .*=> //p' | head -1)
if [[ -n $xgboost ]]; then
  add_program "$(realpath "$xgboost")" lib libxgboost.so.0
else
  echo "make_wheel: no libxgboost.so.0 here, so the wheel trains no trees" >&2
fi
add_libraries

# make_wheel PYTHON: a wheel for it in the output folder. The tag says what glibc it needs, for which pip then looks.
make_wheel() {
  local python=$1 folder name size
  folder=$(mktemp -d "$scratch/wheel.XXXX")
  HONE_PREFIX=$installed HONE_BUNDLE=$stage "$python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$folder" ./python
  name=$(build/venv/bin/python -m wheel tags --remove --platform-tag "manylinux_2_${glibc}_x86_64" "$folder"/*.whl)
  size=$(stat -c %s "$folder/$name")
  ((size <= limit)) || fail "$name has $size bytes, expected at most $limit"
  mkdir -p "$output"
  mv "$folder/$name" "$output/"
  echo "$output/$name: $(((size + 999999) / 1000000)) MB"
}

glibc=$(needed_glibc)
if ((${#pythons[@]} == 0)); then make_wheel "build/venv/bin/python"; fi
for python in "${pythons[@]}"; do
  venv=$(mktemp -d "$scratch/venv.XXXX")
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'scikit-build-core>=0.10' 'nanobind>=2.4' ninja
  make_wheel "$venv/bin/python"
done
