#!/bin/sh
# keep_resources.sh OBJECT COMMAND…: runs a compiler's COMMAND and keeps what ptxas says of registers, spills and shared memory in
# OBJECT.resources, from which tests/kernels/cuda/resources.sh makes its table. All else it says is shown.
object=$1
shift
"$@" 2> "$object.said"
status=$?
ptxas='^ptxas info\|bytes stack frame,'
grep "$ptxas" "$object.said" > "$object.resources"
grep -v "$ptxas" "$object.said" >&2
rm "$object.said"
exit $status
