#!/usr/bin/env bash
# resources.sh [--write]: what each CUDA kernel takes of a GPU's multiprocessor, as ptxas said while this build compiled it, against the table
# kernels/cuda/resources.tsv: a kernel that spills or takes more registers than it did is seen without a GPU. --write writes the table anew.
# Figures are one compiler's: with another nvcc only spills that the table does not have are an error. Compared are the architectures that the build is for.
set -euo pipefail
table=$SOURCE/kernels/cuda/resources.tsv
version=$("$NVCC" --version | sed -n 's/.*release .*, V\([0-9.]*\).*/\1/p')

# A row for each kernel: its file and name, the bytes of shared memory it declares and the bytes asked for at its launch, and for each
# architecture its registers, or REGISTERS+SPILLED BYTES. What launches ask for stands in symbols: launch_tiles<BYTES, &(KERNEL)…>.
rows() {
    {
        find "$BUILD/kernels/cuda" -name '*.cu.o.resources' -exec grep . {} +
        find "$BUILD/kernels/cuda" -name '*.cu.o' -exec nm -A {} +
    } | c++filt | LC_ALL=C awk -F "'" '
        function kernel(path, called, at, character, depth) {
            for (at = length(called); at > 0; at--) { # without the arguments: what the last bracket encloses
                character = substr(called, at, 1)
                depth += (character == ")") - (character == "(")
                if (depth == 0) break
            }
            called = substr(called, 1, at - 1); sub(/^void /, "", called)
            sub(/\.o(\.resources)?:.*/, "", path); sub(/.*\//, "", path)
            return path "\t" called
        }
        /Compiling entry function/ { name = kernel($1, $2); architecture = $4 }
        /bytes stack frame/ { split($0, part, ","); spilled = part[2] + 0 }
        /Used [0-9]+ registers/ {
            registers = $0; sub(/.*Used /, "", registers)
            shared = 0
            if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART) + 0
            if (shared > most[name]) most[name] = shared
            cell[name, architecture] = (registers + 0) (spilled ? "+" spilled : "")
            names[name]
        }
        match($0, /launch_tiles<[0-9]+ul, &\(/) {
            bytes = substr($0, RSTART + length("launch_tiles<")) + 0
            launched = substr($0, RSTART + RLENGTH); sub(/\)\), .*/, ")", launched)
            launched = kernel($0, launched)
            if (bytes > asked[launched]) asked[launched] = bytes
            names[launched]
        }
        END {
            for (name in names)
                print name "\t" most[name] + 0 "\t" asked[name] + 0 "\t" cell[name, "sm_80"] "\t" cell[name, "sm_90"] "\t" cell[name, "sm_100"] "\t" cell[name, "sm_120"]
        }' | LC_ALL=C sort
}
rows > seen.tsv
[ -s seen.tsv ] || { echo "ptxas said nothing of any kernel in $BUILD" >&2; exit 1; }

if [ "${1:-}" = --write ]; then
    {
        echo "# What kernels take, as ptxas of nvcc $version says (tests/kernels/cuda/resources.sh --write): bytes of shared memory declared"
        echo "# and of it asked for at the launch, registers of a thread; REGISTERS+BYTES where a thread spills so many bytes."
        printf 'file\tkernel\tshared\tdynamic\tsm_80\tsm_90\tsm_100\tsm_120\n'
        cat seen.tsv
    } > "$table"
    exit 0
fi

# Of the architectures that this build is for.
tail -n +4 "$table" > known.tsv
same_compiler=''
! grep -q "nvcc $version says" "$table" || same_compiler=1
LC_ALL=C awk -F '\t' -v same="$same_compiler" '
    function wrong(what) { print what; found = 1 }
    BEGIN { split("163 227 227 99", KiB, " ") } # of shared memory that a block may have on each architecture
    NR == FNR { known[$1 FS $2] = $0; next }
    FNR == 1 { for (row in known) missing[row] }
    {
        row = $1 FS $2
        delete missing[row]
        if (row in known) split(known[row], was, FS)
        else if (same) wrong("not in the table: " $0)
        for (i = 3; i <= 8; i++) {
            if ($i == "") continue # not built
            seen[i]++
            if (i > 4 && $3 + $4 > KiB[i - 4] * 1024) wrong("kernel\t" row "\tcolumn " i "\tasks for more shared memory than there is: " $3 " + " $4)
            spills = index($i, "+") && !(row in known && index(was[i], "+"))
            if (same && row in known ? was[i] != $i : spills) wrong("kernel\t" row "\tcolumn " i "\tthe table has " was[i] ", now it is " $i)
        }
    }
    END {
        if (same) for (row in missing) wrong("only in the table: " row)
        exit found || !(seen[5] + seen[6] + seen[7] + seen[8])
    }' known.tsv seen.tsv >&2 || { echo "kernels take other than $table says (columns are file, kernel, shared, dynamic, sm_80, 90, 100, 120); if that is meant: resources.sh --write in a build for all four" >&2; exit 1; }
[ -n "$same_compiler" ] || echo "compared spills alone: the table is of another nvcc than $version" # whose registers are its own
