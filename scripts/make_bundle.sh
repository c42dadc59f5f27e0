#!/usr/bin/env bash
# Makes the portable archive: the program with all libraries but glibc's, the graphs of models/, tests of devices and
# what scripts/device_check.sh needs. It runs on any x86-64 Linux whose glibc is not older than this machine's.
set -euo pipefail
usage="usage: scripts/make_bundle.sh [--build FOLDER] OUTPUT.tar.xz|OUTPUT.tar.gz|OUTPUT.tar.zst|FOLDER"
here=$(pwd)
cd "$(dirname "$0")/.."
build=build/release
if [[ ${1:-} == --build ]]; then build=$(cd "$here" && realpath "$2"); shift 2; fi
[[ $# == 1 ]] || { echo "$usage" >&2; exit 2; }
output=$(cd "$here" && realpath -m "$1")
limit=$((50 << 20))  # bytes of an archive
device_tests=(runtime/hone_device_test artifact/hone_device_model_test backend/hone_gpu_space_test backend/hone_gpu_code_test measure/hone_measure_device_test)
test_objects=(artifact/CMakeFiles/hone_artifact_test_kernels.dir/artifact_test_kernels.cc.o
              measure/CMakeFiles/hone_measure_test_kernels.dir/test_kernels.cc.o)

fail() { echo "make_bundle: $*" >&2; exit 1; }
command -v patchelf >/dev/null || fail "no patchelf: run scripts/setup.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stage=$scratch/hone
mkdir -p "$stage"/{bin,lib,libexec/hone,share/hone,tests,examples,benchmarks,scripts}

programs=()
# add_program FILE FOLDER: a stripped copy that looks for its libraries, and for theirs, in lib/.
add_program() {
  local copy=$stage/$2/${1##*/} up
  [[ -f $build/$1 ]] || fail "no $build/$1: build it first (cmake --build --preset release)"
  strip -o "$copy" "$build/$1"
  up=$(realpath --relative-to="$stage/$2" "$stage/lib")
  patchelf --force-rpath --set-rpath "\$ORIGIN/$up" "$copy"
  programs+=("$copy")
}

# A libLLVM.so with what the programs call: a third of the whole, which has the processors of all makers, and without
# the solver and the XML parser that only the rest needs.
make_llvm() {
  local name folder
  name=$(patchelf --print-needed "$stage/bin/hone" | grep '^libLLVM')
  folder=$(patchelf --print-rpath "$build/tools/hone/hone" | tr ':' '\n' | grep llvm)
  nm -D --undefined-only "${programs[@]}" | sed -n 's/^ *U \(.*\)@LLVM_.*/\1/p' | sort -u >"$scratch/called"
  { echo "LLVM_${name#libLLVM.so.} { global:"; sed 's/$/;/' "$scratch/called"; echo "local: *; };"; } >"$scratch/exports"
  g++ -shared -o "$stage/lib/$name" -Wl,-soname,"$name" -Wl,--version-script="$scratch/exports" -Wl,--gc-sections -Wl,-s \
    -Wl,-Bsymbolic -Wl,-z,defs $(sed 's/^/-Wl,-u,/' "$scratch/called") -Wl,--as-needed \
    -Wl,--start-group "$folder"/libLLVM*.a -Wl,--end-group -l:libz.so.1 -l:libzstd.so.1 -l:libtinfo.so.6
}

# All other libraries, but glibc's: those belong to the kernel and the drivers of a machine.
add_libraries() {
  local glibc='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl)\.so\.[0-9]+)$' file
  { ldd "${programs[@]}" "$stage"/lib/*; } | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r file; do
    [[ $file == "$stage"/* || ${file##*/} =~ $glibc ]] || cp -Lu "$file" "$stage/lib/"
  done
  chmod u+w "$stage"/lib/*
}

add_program tools/hone/hone bin
add_program tools/libexec/hone/hone-worker libexec/hone
for test in "${device_tests[@]}"; do add_program "src/hone/$test" tests; done
for object in "${test_objects[@]}"; do cp "$build/src/hone/$object" "$stage/tests/"; done
make_llvm
add_libraries
cp -r data/records "$stage/share/hone/"
cp -r models LICENSE "$stage/"
cp -r benchmarks/gpu benchmarks/engines.py benchmarks/model_files.py "$stage/benchmarks/"
cp examples/small.onnx "$stage/examples/"
cp scripts/device_check.sh "$stage/scripts/"
find "$stage" -name __pycache__ -prune -exec rm -r {} +

case $output in
  *.tar.xz) export XZ_OPT=-T0 ;;
  *.tar.zst) export ZSTD_CLEVEL=19 ;;
  *.tar.gz) export GZIP=-9 ;;
  *.tar*) fail "$output: an archive ends in .tar.xz, .tar.gz or .tar.zst" ;;
  *) mkdir -p "$output"; cp -r "$stage/." "$output/"; exit ;;
esac
tar --create --auto-compress --file "$output" --owner 0 --group 0 --directory "$scratch" hone
size=$(stat -c %s "$output")
echo "$output: $(((size + (1 << 20) - 1) >> 20)) MiB"
((size <= limit)) || fail "more than $((limit >> 20)) MiB"
