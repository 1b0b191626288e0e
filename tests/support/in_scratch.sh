#!/usr/bin/env bash
# Runs a test script in a scratch folder of its own, which is removed afterwards: in_scratch.sh SCRIPT [ARGUMENTS]
set -eu
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gdn-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
script=$1
shift
cd "$scratch"
bash -eu "$script" "$@"
