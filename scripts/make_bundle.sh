#!/usr/bin/env bash
# Makes the portable archive: the program with all libraries but glibc's, the graphs of models/, tests of devices and
# what scripts/device_check.sh needs. It runs on any x86-64 Linux whose glibc is not older than this machine's.
set -euo pipefail
usage="usage: scripts/make_bundle.sh [--build FOLDER] OUTPUT.tar.xz|OUTPUT.tar.gz|OUTPUT.tar.zst|FOLDER"
. "$(dirname "$0")/bundle.sh"
limit=$((50 << 20))  # bytes of an archive
device_tests=(runtime/hone_device_test artifact/hone_device_model_test backend/hone_gpu_space_test backend/hone_gpu_code_test measure/hone_measure_device_test)
test_objects=(artifact/CMakeFiles/hone_artifact_test_kernels.dir/artifact_test_kernels.cc.o
              measure/CMakeFiles/hone_measure_test_kernels.dir/test_kernels.cc.o)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stage=$scratch/hone
mkdir -p "$stage"/{bin,lib,libexec/hone,share/hone,tests,examples,benchmarks,scripts}

add_program "$build/tools/hone/hone" bin
add_program "$build/tools/libexec/hone/hone-worker" libexec/hone
for test in "${device_tests[@]}"; do add_program "$build/src/hone/$test" tests; done
for object in "${test_objects[@]}"; do cp "$build/src/hone/$object" "$stage/tests/"; done
llvm=$(folder_of_llvm)
make_llvm "$llvm"
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
