#!/bin/sh
# Trains on all accelerators of some machines. Run the same command on each, with one folder that all of them share:
#
#     HEAD=node1 NODES=2 NODE=0 ./torchrun.sh multi30k-en-de /shared/runs/mine
#     HEAD=node1 NODES=2 NODE=1 ./torchrun.sh multi30k-en-de /shared/runs/mine
#
# On one machine: ./torchrun.sh multi30k-en-de runs/mine
set -eu
recipe=$1 run=$2
shift 2
exec torchrun \
    --nnodes="${NODES:-1}" \
    --node-rank="${NODE:-0}" \
    --nproc-per-node="${PER_NODE:-gpu}" \
    --master-addr="${HEAD:-127.0.0.1}" \
    --master-port="${PORT:-29500}" \
    -m regardant train "$recipe" --out "$run" "$@"
