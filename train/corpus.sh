#!/usr/bin/env bash
# Prepares a real English text to train on: corpus.sh [NAME] [DIRECTORY]   (default: kjv, corpus/NAME beside train/)
#
#   kjv         4.2 MB  the King James Bible of 1611 (out of copyright): a file a book, 01-Ge.txt … 66-Rev.txt, a paragraph
#                       a chapter, blank lines between. From Debian's bible-kjv-text, which train/setup.sh installs
#   dictionary   35 MB  the Collaborative International Dictionary of English (GPL), from Debian's dict-gcide: a file a letter
#   kernel       40 MB  the documentation of Linux (GPL), from Debian's linux-doc
#   reference    75 MB  both: enough that a small model's training need not read anything twice
#
# All but kjv are split by documents, entries and files: every 20th is in DIRECTORY/validation/*.txt, the rest in
# DIRECTORY/train/*.txt. Their packages, some 50 MB, are fetched by apt-get, and not installed. Does nothing where the directory
# exists, which appears only when complete.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# A word with a slash is a directory for kjv.
name=kjv directory=
case "${1:-}" in
    '') ;;
    */*) directory=$1 ;;
    *) name=$1 directory=${2:-} ;;
esac
case "$name" in
    kjv) sources=(kjv) ;;
    dictionary | kernel) sources=("$name") ;;
    reference) sources=(dictionary kernel) ;;
    *) echo "corpus.sh: no corpus is called $name: kjv, dictionary, kernel, reference" >&2; exit 2 ;;
esac
directory=${directory:-$(dirname "$here")/corpus/$name}

if [ -d "$directory" ]; then
    echo "corpus.sh: $directory is there"
    exit 0
fi

mkdir -p "$(dirname "$directory")"
scratch=$(mktemp -d "$directory.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

fetch() { # PACKAGE: its files, in $scratch/package
    if ! command -v apt-get > /dev/null || ! command -v dpkg-deb > /dev/null; then
        echo "corpus.sh: $name is made of packages of Debian or Ubuntu; elsewhere, train on text of your own" >&2
        exit 1
    fi
    rm -rf "$scratch/package"
    mkdir "$scratch/package"
    (cd "$scratch/package" && apt-get -qq -o APT::Sandbox::User=root download "$1" && dpkg-deb -x ./*.deb . && rm ./*.deb) || {
        echo "corpus.sh: the package $1 cannot be fetched: is there a network, and are package lists recent (apt-get update)?" >&2
        exit 1
    }
}

# One line a verse, "Ge1:1 In the beginning…", becomes one line a chapter and a file a book. Book names may start with a
# digit ("1Sa16:7"), so the reference is cut at the colon and the chapter's number taken off the end.
make_kjv() { # DIRECTORY
    if ! command -v bible > /dev/null; then
        echo "corpus.sh: the packages bible-kjv and bible-kjv-text are missing: run train/setup.sh," >&2
        echo "or put text of your own as $directory/NAME.txt" >&2
        exit 1
    fi
    bible -f gen1:1-rev22:21 < /dev/null | LC_ALL=C awk -v out="$1" '
    {
        reference = $1
        sub(/:[0-9]+$/, "", reference)
        if (reference == $1) { print "corpus.sh: not a verse: " $0 > "/dev/stderr"; bad = 1; exit 1 }
        text = substr($0, length($1) + 2)
        gsub(/  +/, " ", text)
        sub(/ $/, "", text)
        if (reference != last) {
            book = reference
            sub(/[0-9]+$/, "", book)
            if (last != "") printf "\n" > file
            if (book != name) {
                if (last != "") close(file)
                name = book
                file = sprintf("%s/%02d-%s.txt", out, ++books, book)
            } else {
                printf "\n" > file
            }
            last = reference
        } else {
            printf " " > file
        }
        printf "%s", text > file
    }
    END {
        if (bad) exit 1
        printf "\n" > file
        if (books != 66) { print "corpus.sh: the bible program gave " books + 0 " books, not 66" > "/dev/stderr"; exit 1 }
    }'
}

# An entry starts with its headword in the first column, after a blank line: "Beneficiary \Ben`e*fi"ci*a*ry\, n.". What
# comes before the first word are notices. Lines that only name an edition ("[1913 Webster]") would be a tenth of the text.
make_dictionary() { # DIRECTORY
    fetch dict-gcide
    gzip -dc < "$scratch/package/usr/share/dictd/gcide.dict.dz" | LC_ALL=C awk -v out="$1" '
    /^[ \t]*\[[A-Z0-9][A-Za-z0-9. +]*\][ \t]*$/ { next }
    blank && /^[A-Za-z][^\\]*\\/ {
        letter = toupper(substr($0, 1, 1))
        file = sprintf("%s/%s/dictionary-%s.txt", out, entries++ % 20 == 19 ? "validation" : "train", letter)
    }
    { if (blank && file != "" && !/^$/) print "" > file }
    { blank = /^[ \t]*$/ }
    file != "" && !blank { print > file }
    END { if (entries < 100000) { print "corpus.sh: " entries + 0 " entries of the dictionary, not 100000" > "/dev/stderr"; exit 1 } }'
}

join_texts() { # the files of the package that the input lists, less those in $scratch/binary
    (cd "$scratch/package" && grep -vxFf "$scratch/binary" | xargs cat)
}

make_kernel() { # DIRECTORY
    local package
    package=$(apt-cache depends linux-doc 2> /dev/null | sed -n 's/.*Depends: *\(linux-doc-[0-9.]*\).*/\1/p' | head -n 1) || package=
    fetch "${package:-linux-doc}"
    (cd "$scratch/package" && find usr/share/doc/linux-doc*/Documentation -type f -name '*.gz' ! -name '*.svg.gz') |
        LC_ALL=C sort > "$scratch/files"
    if [ "$(wc -l < "$scratch/files")" -lt 1000 ]; then
        echo "corpus.sh: fewer than 1000 files of documentation in ${package:-linux-doc}" >&2
        exit 1
    fi
    # Among the documents are pictures: whatever has a zero byte is no text. grep's status is 1 where it finds none.
    (cd "$scratch/package" && xargs gzip -d < "$scratch/files" && sed -i 's/\.gz$//' "$scratch/files")
    (cd "$scratch/package" && LC_ALL=C xargs grep -laP '\x00' < "$scratch/files") > "$scratch/binary" || true
    [ ! -s "$scratch/binary" ] || echo "corpus.sh: left out, not text: $(sed 's/.*Documentation\///' "$scratch/binary" | paste -sd ' ')"
    awk 'NR % 20 != 0' "$scratch/files" | join_texts > "$1/train/kernel.txt"
    awk 'NR % 20 == 0' "$scratch/files" | join_texts > "$1/validation/kernel.txt"
}

made=$scratch/made
mkdir "$made"
[ "$name" = kjv ] || mkdir "$made/train" "$made/validation"
for source in "${sources[@]}"; do "make_$source" "$made"; done

chmod 755 "$made"
mv -T "$made" "$directory"
echo "corpus.sh: wrote $directory, $(find "$directory" -name '*.txt' -print0 | xargs -0 cat | wc -c) bytes in $(find "$directory" -name '*.txt' | wc -l) files"
