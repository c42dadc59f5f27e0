#!/bin/bash
# Makes the cost models that ship with Hone (src/hone/cost/pretrained) from databases of
# measurements; with models, measures those first:
#
#   HONE=build/dev/tools/hone/hone scripts/train_cost_models.sh DB [MODEL.onnx ...]
#
# SECONDS_EACH=60, THREADS=1 and SEARCHES="random evolutionary" say how a model is measured;
# DEVICES="host host-avx2" which measurements the cost models learn from.
set -euo pipefail
hone=${HONE:?set HONE to the program}
db=${1:?usage: train_cost_models.sh DB [MODEL.onnx ...]}
shift
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for model in "$@"; do
  for threads in ${THREADS:-1}; do
    for search in ${SEARCHES:-random evolutionary}; do
      "$hone" tune "$model" -o "$scratch/model.so" --db "$db" --search "$search" \
        --threads "$threads" --budget "${SECONDS_EACH:-60}s"
    done
  done
done
for name in gbdt combined; do
  "$hone" eval --db "$db" --cost "$name" --split by-model
  "$hone" train --db "$db" ${DEVICES:+$(printf -- '--device %s ' $DEVICES)} --cost "$name" -o "$scratch/$name.model"
done
mv "$scratch"/*.model "$root/src/hone/cost/pretrained/"
