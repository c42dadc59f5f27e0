#!/bin/bash
# Makes the cost models that ship with Hone (src/hone/cost/pretrained) from a database of measured
# schedules; with models, measures theirs first, or goes on with it:
#
#   HONE=build/release/tools/hone/hone scripts/train_cost_models.sh DB [MODEL.onnx ...]
#
# DEVICES="host host-avx2" says which machines are measured and learnt from: without it host, and
# host-avx2 where the host has AVX-512. THREADS="1 2", SCHEDULES=500, ROUND=16, TASK_TIME=4s and
# BUDGET=30m say how hone dataset make measures, OUTPUT=src/hone/cost/pretrained where the files go.
# JUDGE="resnet50 bert_base_s128" holds these networks out, together; without it each is in turn.
# CPU=znver5 makes combined-znver5.model alone, for that processor (DEVICES=host): what the others
# learned elsewhere stays.
set -euo pipefail
hone=${HONE:?set HONE to the program}
db=${1:?usage: train_cost_models.sh DB [MODEL.onnx ...]}
shift
root=$(cd "$(dirname "$0")/.." && pwd)
output=${OUTPUT:-$root/src/hone/cost/pretrained}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# host-avx2 is another machine only where the host's vectors are wider.
known_devices() {
  "$hone" devices --json | python3 -c '
import json, sys
bytes_of = {device["name"]: device["vector_bytes"] for device in json.load(sys.stdin) if "vector_bytes" in device}
print("host host-avx2" if bytes_of["host"] > bytes_of["host-avx2"] else "host")'
}

known=${DEVICES:-}
[[ $known ]] || known=$(known_devices)
read -ra devices <<<"$known"
read -ra threads <<<"${THREADS:-1 2}"
joined() { local IFS=,; echo "$*"; }

mkdir -p "$output"
if (($# > 0)); then
  "$hone" dataset make "$@" --db "$db" --device "$(joined "${devices[@]}")" \
    --threads "$(joined "${threads[@]}")" --schedules "${SCHEDULES:-500}" --round "${ROUND:-16}" \
    --task-time "${TASK_TIME:-4s}" --budget "${BUDGET:-30m}"
fi
declare -A kinds=([gbdt]=gbdt [combined]=combined)
[[ ${CPU:-} ]] && kinds=([combined-$CPU]=combined)
options=()
for device in "${devices[@]}"; do options+=(--device "$device"); done
for name in "${!kinds[@]}"; do
  "$hone" train --db "$db" "${options[@]}" --cost "${kinds[$name]}" -o "$scratch/$name.model"
done
mv "$scratch"/*.model "$output/"
judge=(--split by-model)
if [[ ${JUDGE:-} ]]; then
  held_out=()
  for network in $JUDGE; do held_out+=(--hold-out "$network"); done
  "$hone" dataset split --db "$db" --by model "${held_out[@]}" --validation 0 -o "$scratch/split.json"
  judge=(--split-file "$scratch/split.json")
fi
for name in "${kinds[@]}"; do
  for device in "${devices[@]}"; do
    echo "$name, networks held out, $device:"
    "$hone" eval --db "$db" --device "$device" --cost "$name" "${judge[@]}" ||
      echo "$name, $device: not judged" >&2
  done
done
