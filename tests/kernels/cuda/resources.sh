#!/usr/bin/env bash
# resources.sh [--write]: what each CUDA kernel takes of a GPU's multiprocessor, as ptxas said while this build compiled it, against the table
# kernels/cuda/resources.tsv: a kernel that spills or takes more registers than it did is seen without a GPU. --write writes the table anew.
# Figures are one compiler's: with another nvcc only spills that the table does not have are an error.
set -euo pipefail
table=$SOURCE/kernels/cuda/resources.tsv
version=$("$NVCC" --version | sed -n 's/.*release .*, V\([0-9.]*\).*/\1/p')

# A row for each kernel: its file and name, the bytes of shared memory it declares, and for each architecture its registers, or REGISTERS+SPILLED BYTES.
rows() {
    find "$BUILD/kernels/cuda" -name '*.cu.o.resources' -exec grep . {} + | c++filt | LC_ALL=C awk -F "'" '
        /Compiling entry function/ {
            name = $2; architecture = $4
            depth = 0 # without the arguments: what the last bracket encloses
            for (at = length(name); at > 0; at--) {
                character = substr(name, at, 1)
                depth += (character == ")") - (character == "(")
                if (depth == 0) break
            }
            name = substr(name, 1, at - 1); sub(/^void /, "", name)
            file = $1; sub(/\.o\.resources:.*/, "", file); sub(/.*\//, "", file)
            name = file "\t" name
        }
        /bytes stack frame/ { split($0, part, ","); spilled = part[2] + 0 }
        /Used [0-9]+ registers/ {
            registers = $0; sub(/.*Used /, "", registers)
            shared = 0
            if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART) + 0
            if (shared > most[name]) most[name] = shared
            cell[name, architecture] = (registers + 0) (spilled ? "+" spilled : "")
            names[name]
        }
        END {
            for (name in names)
                print name "\t" most[name] + 0 "\t" cell[name, "sm_80"] "\t" cell[name, "sm_90"] "\t" cell[name, "sm_100"] "\t" cell[name, "sm_120"]
        }' | LC_ALL=C sort
}
rows > seen.tsv
[ -s seen.tsv ] || { echo "ptxas said nothing of any kernel in $BUILD" >&2; exit 1; }

if [ "${1:-}" = --write ]; then
    {
        echo "# What kernels take, as ptxas of nvcc $version says (tests/kernels/cuda/resources.sh --write): bytes of shared memory declared,"
        echo "# registers of a thread; REGISTERS+BYTES where a thread spills so many bytes."
        printf 'file\tkernel\tshared\tsm_80\tsm_90\tsm_100\tsm_120\n'
        cat seen.tsv
    } > "$table"
    exit 0
fi

tail -n +4 "$table" > known.tsv
if grep -q "nvcc $version says" "$table"; then
    diff known.tsv seen.tsv > difference ||
        { echo "kernels take other than $table says ('<'); if that is meant, resources.sh --write:" >&2; cat difference >&2; exit 1; }
else # another compiler: its registers are its own
    LC_ALL=C awk -F '\t' '
        NR == FNR { for (i = 4; i <= 7; i++) spills[$1, $2, i] = index($i, "+"); next }
        { for (i = 4; i <= 7; i++) if (index($i, "+") && !spills[$1, $2, i]) { print "spills now: " $0; found = 1 } }
        END { exit found }' known.tsv seen.tsv >&2
    echo "compared spills alone: the table is of another nvcc than $version"
fi
