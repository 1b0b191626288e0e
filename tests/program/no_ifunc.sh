#!/usr/bin/env bash
# No function of the program is chosen by the dynamic linker (GNU_IFUNC, as of target_clones): the choice would run before the
# runtime of a sanitizer is there, and a build with -DGDN_SANITIZE=thread ends before main.
set -euo pipefail
modules=$(dirname "$GDN")
for file in "$GDN" "$modules"/libgdn_*.so; do
    [ -e "$file" ] || continue # no module in this build
    readelf -sW "$file" > symbols
    grep -q FUNC symbols || { echo "readelf finds no functions in $file"; exit 1; }
    ! grep -w IFUNC symbols || { echo "the above are in $file"; exit 1; }
done
