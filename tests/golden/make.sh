#!/usr/bin/env bash
# Writes the golden files anew: make.sh [NAME …]   (default: every NAME.yaml of this folder)
#
# Each NAME.yaml is a configuration for `gdn train`, kept in YAML's JSON form so that the executable specification,
# gdn_reference.py, reads the same file; NAME.h5 is what the specification makes of it (tokens, starting weights,
# first gradients, trajectory, final weights). The committed files are the test: run this only when the
# specification or a configuration changes.
#
# Needs a Python with torch and h5py (PYTHON names it, default python3) and h5repack of hdf5-tools, which packs the file
# into half its size by HDF5 1.8's compact groups, still readable by every HDF5 from 1.8 on.
# Small models of Hugging Face's transformers and their logits are make_huggingface.py's, which needs transformers and safetensors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
python=${PYTHON:-python3}
"$python" -c 'import torch, h5py' || { echo "make.sh: $python has no torch or h5py: set PYTHON to one that has" >&2; exit 1; }
command -v h5repack > /dev/null || { echo "make.sh: h5repack is needed (Debian: hdf5-tools)" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
most=204800 # bytes a file may have, so that the repository stays small

[ $# -gt 0 ] || set -- *.yaml
for config in "$@"; do
    name=$(basename "$config" .yaml)
    what=golden
    case $name in loss-mask*) what=golden-loss-mask ;; esac # its tokens do not all count
    "$python" -W ignore gdn_reference.py $what "$name.yaml" "$scratch/raw.h5" > /dev/null
    h5repack --low=1 --high=2 "$scratch/raw.h5" "$scratch/packed.h5" # 1: HDF5 1.8, 2: HDF5 1.10
    bytes=$(stat -c %s "$scratch/packed.h5")
    if [ "$bytes" -gt "$most" ]; then
        echo "make.sh: $name.h5 would have $bytes bytes, more than $most: make its model smaller" >&2
        exit 1
    fi
    mv "$scratch/packed.h5" "$name.h5"
    rm "$scratch/raw.h5"
    echo "$name.h5 $bytes bytes"
done
