# Sourced by run.sh and speed.sh, which are in this folder. Changes to the source tree, where paths of the configurations start.
#   $here, $source, $gdn, $threads   this folder, the tree, the program, OpenMP threads
#   $machine                         the last two columns' words for where a number was measured
#   part_exists PART                 ends the script where study.tsv has no such part; '' stands for all
#   each_row PART COMMAND            COMMAND PART NAME SHAPE SEEDS SETTING… for each row of the study
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../../.." && pwd)
gdn=$(realpath "${GDN:-$source/build/gdn}")
[ -x "$gdn" ] || { echo "${0##*/}: $gdn is not there: build first, or name the program in GDN" >&2; exit 2; }
threads=${THREADS:-$(nproc)}
machine="$threads threads, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
cd "$source"

part_exists() {
    [ -z "$1" ] || grep -q "^$1[[:blank:]]" "$here/study.tsv" || { echo "${0##*/}: study.tsv has no part $1" >&2; exit 2; }
}

# The list is read by descriptor 4: a training run must not take it for its input.
each_row() {
    local study name shape seeds settings
    while read -r study name shape seeds settings <&4; do
        case "$study" in '' | '#'*) continue ;; esac
        [ -z "$1" ] || [ "$study" = "$1" ] || continue
        # shellcheck disable=SC2086 # settings are words
        "$2" "$study" "$name" "$shape" "$seeds" $settings
    done 4< "$here/study.tsv"
}
