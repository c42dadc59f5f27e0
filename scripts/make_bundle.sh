#!/usr/bin/env bash
# Makes the portable archive: an installation with all libraries but glibc's and with a linker, the graphs of models/, tests
# of devices and what scripts/device_check.sh needs. It runs on any x86-64 Linux whose glibc is not older than Debian 12's.
# With --device it is without what scripts/device_check.sh does not need, so that it fits beside the repository into what
# a lent machine takes.
set -euo pipefail
usage="usage: scripts/make_bundle.sh [--device] [--build FOLDER] [OUTPUT.tar.xz|OUTPUT.tar.gz|OUTPUT.tar.zst|FOLDER]"
device=
if [[ ${1:-} == --device ]]; then device=yes; shift; fi
default_output=hone-VERSION-x86_64.tar.xz
. "$(dirname "$0")/bundle.sh"
limit=$((50 << 20))  # bytes of an archive
oldest_glibc=36      # of Debian 12, after "2."
device_tests=(runtime/hone_device_test artifact/hone_device_model_test backend/hone_gpu_space_test backend/hone_gpu_code_test measure/hone_measure_device_test)
test_objects=(artifact/CMakeFiles/hone_artifact_test_kernels.dir/artifact_test_kernels.cc.o
              measure/CMakeFiles/hone_measure_test_kernels.dir/test_kernels.cc.o)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
installed=$scratch/installed
name=hone-$version-x86_64
stage=$scratch/$name
cmake --install "$build" --prefix "$installed" >/dev/null
mkdir -p "$stage"/{bin,lib,libexec/hone,tests,examples,benchmarks,scripts}

# What the check of devices does not need: the library, and what commands need that it does not call.
add_the_rest() {
  add_program "$(realpath "$installed/lib/libhone.so")" lib
  for link in "$installed"/lib/libhone.so*; do [[ ! -L $link ]] || cp -P "$link" "$stage/lib/"; done
  cp -r "$installed"/lib/{cmake,pkgconfig} "$stage/lib/"
  cp -r "$installed"/{include,share} "$stage/"
  add_server
}

# Programs and libraries get another path to libraries; the rest is as it is installed.
add_program "$installed/bin/hone" programs  # which bin/hone starts
add_program "$installed/libexec/hone/hone-worker" libexec/hone
[[ $device ]] || add_the_rest
for test in "${device_tests[@]}"; do add_program "$build/src/hone/$test" tests; done
for object in "${test_objects[@]}"; do cp "$build/src/hone/$object" "$stage/tests/"; done
llvm=$(folder_of_llvm)
add_linker "$llvm"
make_llvm "$llvm"
add_libraries
cp -r models LICENSE CHANGELOG.md "$stage/"
cp -r benchmarks/gpu benchmarks/engines.py benchmarks/model_files.py "$stage/benchmarks/"
cp examples/small.onnx "$stage/examples/"
cp scripts/device_check.sh "$stage/scripts/"
find "$stage" -name __pycache__ -prune -exec rm -r {} +
glibc=$(needed_glibc)
((glibc <= oldest_glibc)) || fail "it needs glibc 2.$glibc, expected 2.$oldest_glibc at most: make it on Debian 12"
sed "s/@GLIBC@/$glibc/" scripts/start_hone.sh >"$stage/bin/hone"
chmod 755 "$stage/bin/hone"

case $output in
  # Its window reaches from one program to the next, which share most of their code.
  *.tar.xz) export XZ_OPT="--x86 --lzma2=preset=9e,dict=192MiB" ;;
  *.tar.zst) export ZSTD_CLEVEL=19 ;;
  *.tar.gz) export GZIP=-9 ;;
  *.tar*) fail "$output: an archive ends in .tar.xz, .tar.gz or .tar.zst" ;;
  *) mkdir -p "$output"; cp -r "$stage/." "$output/"; exit ;;
esac
tar --create --auto-compress --sort=name --file "$output" --owner 0 --group 0 --directory "$scratch" "$name"
size=$(stat -c %s "$output")
echo "$output: $(((size + (1 << 20) - 1) >> 20)) MiB, for glibc 2.$glibc or newer"
((size <= limit)) || fail "more than $((limit >> 20)) MiB"
[[ -z $device ]] || scripts/check_travel.sh "$output" "$stage"
