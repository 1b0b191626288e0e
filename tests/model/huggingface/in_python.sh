#!/usr/bin/env bash
# The model for transformers (model/huggingface): in_python.sh golden.py|generation.py [ARGUMENT …]. Python is $PYTHON, or python3; without
# the packages that are needed, torch, transformers, h5py and yaml, the test is skipped.
set -euo pipefail
python=${PYTHON:-python3}
command -v "$python" > /dev/null || { echo "skipped: $python is not there"; exit 77; }
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec "$python" -W ignore "$SOURCE/tests/model/huggingface/$1" "${@:2}"
