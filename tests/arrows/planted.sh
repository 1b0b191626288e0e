#!/usr/bin/env bash
# What arrows.sh finds, tried on a house of three files with a fault planted at a time: each must fail, naming what is meant. $CC compiles it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export SOURCE=$PWD/house BUILD=$PWD/house/build TABLE=$PWD/permitted.txt
bad=0

# FILE LINE…: writes a source.
plant() { mkdir -p "house/$(dirname "$1")" && printf '%s\n' "${@:2}" > "house/$1"; }

# The house as it should be: train uses data, data uses itself. A copy, once it is built.
house() {
    rm -rf house
    printf '%s\n' '# a comment' 'data:' 'train: data' > permitted.txt
    if [ -d ready ]; then cp -a ready house; return; fi
    plant data/token.h 'int token(void);'
    plant data/token.c '#include "data/token.h"' '#include "data/file.h"' 'int token(void) { return file(); }'
    plant data/file.h 'int file(void);'
    plant data/file.c '#include "file.h"' 'int file(void) { return 1; }'
    plant train/main.c '#include "data/token.h"' 'int main(void) { return token(); }'
}

# Compiles every source that is new to where a generator would put its object.
build() {
    local source room object
    (cd house && find . -name '*.c' ! -path './build/*') | while read -r source; do
        source=${source#./} && room=${source%%/*}
        object=$BUILD/$room/CMakeFiles/gdn_$room.dir/${source#*/}.o
        mkdir -p "$(dirname "$object")"
        if [ ! "$object" -nt "house/$source" ]; then "${CC:-cc}" -Ihouse -c "house/$source" -o "$object"; fi
    done
}

# WHAT WORDS…: arrows.sh must fail, and one line of what it says must be this.
finds() {
    local what=$1 said
    shift
    build
    if said=$(bash "$here/arrows.sh") || ! grep -qxF -- "$*" <<< "$said"; then
        printf 'FAILED: %s was not found; arrows.sh said\n%s\n' "$what" "$said"
        bad=1
    fi
}

# WHAT: arrows.sh must be content.
content() {
    local said
    if ! said=$(bash "$here/arrows.sh"); then
        printf 'FAILED: %s:\n%s\n' "$1" "$said"
        bad=1
    fi
}

house && build && cp -a house ready
content 'a house in order was found faulty'

plant data/gone.c 'int main(void); int gone(void) { return main(); }' && build && rm house/data/gone.c
content 'an object whose source is gone was looked at'

house && plant train/step.h 'enum { STEP = 1 };' && plant data/file.c '#include "file.h"' '#include "train/step.h"' 'int file(void) { return STEP; }'
finds 'an include upward' 'FAILED: data/file.c includes train/step.h: data may not use train'

house && plant train/step.h 'enum { STEP = 1 };' && plant data/file.c '#include "file.h"' '#  include "../train/step.h"' 'int file(void) { return STEP; }'
finds 'an include upward by way of ..' 'FAILED: data/file.c includes train/step.h: data may not use train'

house && plant train/step.c 'int step(void) { return 1; }' && plant data/file.c 'int step(void);' 'int file(void) { return step(); }'
finds 'a function of an upper folder, declared by hand' 'FAILED: data/file.c uses step of train/step.c: data may not use train'

house && plant train/step.c 'int steps = 1;' && plant data/file.c 'extern int steps;' 'int file(void) { return steps; }'
finds 'a variable of an upper folder' 'FAILED: data/file.c uses steps of train/step.c: data may not use train'

house && plant data/file.h '#include "data/token.h"' 'int file(void);'
finds 'a circle of includes' 'FAILED: a circle, include data/file data/token'
finds 'an include of that circle' '    data/file.h includes data/token.h'

house && plant data/file.c 'int token(void);' 'int file(void) { return token(); }'
finds 'a circle of functions' 'FAILED: a circle, link data/file data/token'
finds 'a function of that circle' '    data/file.c uses token of data/token.c'

house && plant tests/data/made_up.h 'enum { MADE_UP = 1 };' && plant train/main.c '#include "data/token.h"' '#include "tests/data/made_up.h"' 'int main(void) { return token(); }'
finds "a test's header" "FAILED: train/main.c includes tests/data/made_up.h, a test's"

house && plant data/hdf5/set.c 'int set(void);' 'int set(void) { return 1; }'
finds 'a folder that the table lacks' 'FAILED: the table lacks data/hdf5'

house && printf '%s\n' 'data:' 'train: data' 'train/step:' > permitted.txt
finds 'a folder that is not there' 'FAILED: the table has train/step, where no source is'

house && plant train/main.c 'int main(void) { return 0; }'
finds 'an arrow that nobody uses' 'FAILED: the table lets train use data, which it does not'

house && printf '%s\n' 'data: train' 'train: data' > permitted.txt
finds 'a circle in the table' 'FAILED: a circle, table data train'

house && touch -d "1 hour" house/data/file.c
if bash "$here/arrows.sh" > said || ! grep -q '^FAILED: data/file.c has no object' said; then
    echo 'FAILED: a source younger than its object went unnoticed'
    bad=1
fi
exit $bad
