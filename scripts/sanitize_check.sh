#!/usr/bin/env bash
# Builds parts of Hone with sanitizers around a finished build/release (sanitize_folders.py) and runs them
# (docs/contributor/sanitizers.md). What a sanitizer finds, in whichever process, is printed at the end, and is an
# error.
set -euo pipefail
usage="usage: scripts/sanitize_check.sh fuzz [SEEDS] | bad_input [TEST ...] | threads
  fuzz       runs fuzz targets of models, loop programs and schedules, with so many seeds each (1000)
  bad_input  runs the program with bad and hostile files and options: tests/TEST_test.py
  threads    runs unit tests of what has threads, the program and its server, by the thread sanitizer"
cd "$(dirname "$0")/.."
[[ $# -gt 0 && $1 != -* ]] || { echo "$usage" >&2; exit 2; }
kind=$1

python=build/venv/bin/python
scratch=$(mktemp -d)
# Where a library of clang 16 has no symbolizer of its own, that of LLVM 22, which Hone is built with.
common=external_symbolizer_path=/usr/lib/llvm-22/bin/llvm-symbolizer:log_path=$scratch/report
export ASAN_OPTIONS=detect_leaks=0:$common UBSAN_OPTIONS=print_stacktrace=1:$common
# Threads of gRPC, Abseil and LLVM wait for each other by ways that are not seen in a library without the sanitizer.
export TSAN_OPTIONS=$common:ignore_noninstrumented_modules=1:report_thread_leaks=0
failed=()

finish() {
  local status=$?
  if compgen -G "$scratch/report.*" > /dev/null; then
    cat "$scratch"/report.*
    failed+=("a sanitizer's report, above")
  fi
  rm -rf "$scratch"
  for each in "${failed[@]}"; do echo "sanitize_check: failed: $each" >&2; status=1; done
  exit $status
}
trap finish EXIT

# build FOLDER OPTION ...: what sanitize_folders.py writes there with these options.
build() {
  scripts/sanitize_folders.py "$@"
  ninja -C "$1"
}

# check COMMAND ...: goes on after one that fails.
check() {
  "$@" || failed+=("$*")
}

# One folder has all that is built with the address and the undefined behaviour sanitizer, so that kinds share it.
folder=build/asan_part
reads=(hone_base hone_tensor hone_ir hone_compute hone_graph)

case $kind in
  fuzz)
    targets=(fuzz_ir_parser fuzz_ir_passes fuzz_schedule fuzz_import fuzz_import_kinds)
    build $folder --libraries "${reads[@]}" hone_ir_passes hone_schedule hone_graph_testing fuzz_models fuzz_seeds --targets "${targets[@]/#/fuzz/}"
    for target in "${targets[@]}"; do check "$folder/fuzz/$target" 0 "${2:-1000}"; done
    ;;
  bad_input)
    build $folder --libraries "${reads[@]}" hone_trial hone_artifact hone_db hone_runtime hone_session hone_commands hone_api hone_tool \
      --targets tools/hone/hone
    tests=(bad_input hostile_models hostile_inputs hostile_outputs hostile_folders hostile_databases hostile_texts cases)
    if [[ $# -gt 1 ]]; then tests=("${@:2}"); fi
    for test in "${tests[@]}"; do
      check env HONE="$PWD/$folder/tools/hone/hone" HONE_SANITIZE=address $python "tests/${test}_test.py"
    done
    ;;
  threads)
    folder=build/tsan_part
    tests=(remote measure db)
    programs=()
    for test in "${tests[@]}"; do programs+=("src/hone/$test/hone_${test}_test"); done
    build $folder --sanitize thread --libraries hone_base hone_trial hone_runtime hone_db hone_measure hone_machine hone_remote \
      hone_remote_grpc hone_session --targets "${programs[@]}" tools/libexec/hone/hone-serve tools/hone/hone
    export GTEST_FILTER=-store.best_takes_less_than_a_millisecond_among_many:record_arrays.a_changed_byte_gives_records_or_an_error
    for program in "${programs[@]}"; do check env -C "$folder/${program%/*}" setarch -R "./${program##*/}"; done
    hone=$PWD/$folder/tools/hone/hone
    check setarch -R "$hone" compile examples/small.onnx -o "$scratch/compiled.so" --no-db
    # A busy machine measured nothing in 10 s, which would check nothing.
    check setarch -R "$hone" tune examples/small.onnx -o "$scratch/tuned.so" --db "$scratch/trials.db" --budget 60s --overlap yes
    check sh -c 'build/release/tools/hone/hone db stat --db "$1" | grep "^[1-9].* trial"' sh "$scratch/trials.db"
    check env HONE="$hone" HONE_SANITIZE=thread setarch -R $python tests/remote_test.py
    ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
