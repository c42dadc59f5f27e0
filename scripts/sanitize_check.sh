#!/usr/bin/env bash
# Builds parts of Hone with sanitizers around a finished build/release (sanitize_folders.py) and runs them
# (docs/contributor/sanitizers.md). What a sanitizer finds is printed, and this script ends with an error.
set -euo pipefail
usage="usage: scripts/sanitize_check.sh fuzz [SEEDS]  fuzz targets of loop programs and schedules, with so many seeds each (1000)
       scripts/sanitize_check.sh threads       unit tests of what has threads, the program and its server, by the thread sanitizer"
cd "$(dirname "$0")/.."
[[ $# -gt 0 && $1 != -* ]] || { echo "$usage" >&2; exit 2; }
command=$1
shift

python=build/venv/bin/python
# Where a library of clang 16 has no symbolizer of its own, that of LLVM 22, which Hone is built with.
symbolizer=external_symbolizer_path=/usr/lib/llvm-22/bin/llvm-symbolizer
export ASAN_OPTIONS=detect_leaks=0:$symbolizer UBSAN_OPTIONS=print_stacktrace=1:$symbolizer
# Threads of gRPC, Abseil and LLVM wait for each other by ways that are not seen in a library without the sanitizer.
export TSAN_OPTIONS=$symbolizer:ignore_noninstrumented_modules=1:report_thread_leaks=0

# build FOLDER OPTION ...: what sanitize_folders.py writes there with these options.
build() {
  scripts/sanitize_folders.py "$@"
  ninja -C "$1"
}

case $command in
  fuzz)
    folder=build/asan_fuzz
    targets=(fuzz_ir_parser fuzz_ir_passes fuzz_schedule)
    build $folder --libraries hone_base hone_tensor hone_ir hone_ir_passes hone_compute hone_schedule --targets "${targets[@]/#/fuzz/}"
    for target in "${targets[@]}"; do "$folder/fuzz/$target" 0 "${1:-1000}"; done
    ;;
  threads)
    folder=build/tsan_part
    tests=(remote measure db)
    programs=()
    for test in "${tests[@]}"; do programs+=("src/hone/$test/hone_${test}_test"); done
    build $folder --sanitize thread --libraries hone_base hone_trial hone_runtime hone_db hone_measure hone_machine hone_remote \
      hone_remote_grpc hone_session --targets "${programs[@]}" tools/libexec/hone/hone-serve tools/hone/hone
    export GTEST_FILTER=-store.best_takes_less_than_a_millisecond_among_many:record_arrays.a_changed_byte_gives_records_or_an_error
    for program in "${programs[@]}"; do (cd "$folder/${program%/*}" && setarch -R "./${program##*/}"); done
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    hone=$PWD/$folder/tools/hone/hone
    setarch -R "$hone" compile examples/small.onnx -o "$made/compiled.so" --no-db
    setarch -R "$hone" tune examples/small.onnx -o "$made/tuned.so" --db "$made/trials.db" --budget 10s --overlap yes
    HONE=$hone HONE_SANITIZE=thread setarch -R $python tests/remote_test.py
    ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
