#!/usr/bin/env bash
# Prepares a real English text to train on: corpus.sh [DIRECTORY]   (default: corpus/kjv beside train/)
#
# The King James Bible of 1611 (4.2 MB, out of copyright) from Debian's bible-kjv-text: a file a book, 01-Ge.txt …
# 66-Rev.txt, a paragraph a chapter, blank lines between. Does nothing where the directory exists, which appears only when complete.
set -euo pipefail
directory=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/corpus/kjv}

if [ -d "$directory" ]; then
    echo "corpus.sh: $directory is there"
    exit 0
fi
if ! command -v bible > /dev/null; then
    echo "corpus.sh: the packages bible-kjv and bible-kjv-text are missing: run train/setup.sh," >&2
    echo "or put text of your own as $directory/NAME.txt" >&2
    exit 1
fi

mkdir -p "$(dirname "$directory")"
scratch=$(mktemp -d "$directory.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# One line a verse, "Ge1:1 In the beginning…", becomes one line a chapter and a file a book. Book names may start with a
# digit ("1Sa16:7"), so the reference is cut at the colon and the chapter's number taken off the end.
bible -f gen1:1-rev22:21 < /dev/null | LC_ALL=C awk -v out="$scratch" '
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

chmod 755 "$scratch"
mv -T "$scratch" "$directory"
trap - EXIT
echo "corpus.sh: wrote $directory, $(cat "$directory"/*.txt | wc -c) bytes in $(ls "$directory" | wc -l) files"
