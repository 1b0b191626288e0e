#!/usr/bin/env bash
# The house's arrows: which folder may use which (permitted.txt), by every #include and by every symbol that the linker resolves, and no
# circle of files. $SOURCE and $BUILD are the two trees; by hand: SOURCE=$PWD BUILD=$PWD/build bash tests/arrows/arrows.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=$(realpath "${TABLE:-$here/permitted.txt}")
SOURCE=$(realpath "$SOURCE")
BUILD=$(realpath "$BUILD")
# The rooms are the first parts of the table's folders.
rooms=$(sed -n 's/^\([a-z]*\)[a-z_/]*:.*/\1/p' "$table" | sort -u)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cd "$SOURCE"
# shellcheck disable=SC2086 # a list of names without blanks
find $rooms -type f \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.cu' \) | sort > "$scratch/files"
if [ -d tests ]; then find tests -type f -name '*.[ch]' > "$scratch/tests"; else : > "$scratch/tests"; fi
tr '\n' '\0' < "$scratch/files" | xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' > "$scratch/includes" || true

# An object is ROOM/CMakeFiles/TARGET.dir/FILE.o, whichever generator made it; `__` in it is `..`. One whose source is gone, or younger, is
# left over from an earlier build; one of tests/ is what sanitizer builds add (tests/support/lsan_mpi.c).
objects() {
    local object source
    # shellcheck disable=SC2086
    find $rooms -type f -name '*.o' -path '*/CMakeFiles/*.dir/*' | while read -r object; do
        source=${object%%/CMakeFiles/*}/$(rest=${object#*/CMakeFiles/*.dir/} && echo "${rest%.o}")
        source=${source//__\//../}
        while [[ $source =~ ^(.*/)?[^/]+/\.\./(.*)$ ]]; do source=${BASH_REMATCH[1]}${BASH_REMATCH[2]}; done
        if [[ $source == tests/* ]]; then continue; fi
        if [ -e "$SOURCE/$source" ] && [ ! "$SOURCE/$source" -nt "$object" ]; then printf '%s\t%s\n' "$object" "$source"; fi
    done
}
: > "$scratch/objects"
: > "$scratch/symbols"
if command -v nm > /dev/null; then
    cd "$BUILD"
    objects > "$scratch/objects"
    cut -f1 "$scratch/objects" | tr '\n' '\0' | xargs -0 nm -g -P -A > "$scratch/symbols" 2> /dev/null || true # of an object without symbols
    linked=1
else
    echo "no nm here: symbols are not looked at, only includes"
    linked=0
fi

awk -v linked=$linked -f "$here/arrows.awk" part=table "$table" part=files "$scratch/files" part=tests "$scratch/tests" \
    part=includes "$scratch/includes" part=objects "$scratch/objects" part=symbols "$scratch/symbols"
