#!/usr/bin/env bash
# The repository's pages: every relative link in a .md file leads to a file, and its #part to a heading; every source file that a room's
# README.md names is there; README.md is short, and leads to every manual.
set -euo pipefail
bad=0
tell() { echo "FAILED: $*"; bad=1; }
cd "$SOURCE"

# All pages, without git, which a source archive has not: but those in builds, runs and hidden folders.
pages() { find . -mindepth 1 \( -name '.*' -o -name 'build' -o -name 'build-*' -o -path ./runs -o -path ./corpus \) -prune -o -name '*.md' -type f -print | sort; }

# FILE: the targets of its links and pictures, a line each. Indented lines and `…` are code.
targets() { grep -v '^    ' "$1" | sed 's/`[^`]*`//g' | { grep -oE '\]\([^()]+\)' || true; } | sed 's/^](//; s/)$//'; }

# FILE: its headings as links name them: small letters, no punctuation, - for blanks.
headings() { sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^[:alnum:] _-]//g; s/ /-/g'; }

links=0
for page in $(pages); do
    while read -r target; do
        case $target in
            '' | *://* | mailto:*) continue ;;
        esac
        links=$((links + 1))
        file=${target%%#*}
        if [ -n "$file" ]; then file=$(dirname "$page")/$file; else file=$page; fi
        if [ ! -e "$file" ]; then
            tell "$page: ($target) leads nowhere"
        elif [[ $target == *'#'* ]] && ! headings "$file" | grep -qxF -- "${target#*#}"; then
            tell "$page: ($target): no such heading"
        fi
    done < <(targets "$page")
done
[ $links -ge 60 ] || tell "only $links links were found" # README.md alone has more than 40

# A room's README.md: `name.c` and `part*.c` are files of the room, or paths from the top; NAME is for the reader to fill in.
names=0
for page in kernels kernels/lowrank model data dist train train/deltas tests; do
    for name in $(grep -oE '`[A-Za-z0-9_/*]+\.(c|h|cu|cc|sh|cmake|py)`' "$page/README.md" | tr -d '`' | grep -v NAME | sort -u); do
        names=$((names + 1))
        found=$(find "$page" -path "$page/$name" -o -path "$page/*/$name")
        [ -n "$found" ] || [ -e "$name" ] || tell "$page/README.md names $name, which is not there"
    done
done
[ $names -ge 150 ] || tell "only $names source files are named in the rooms' README.md"

bytes=$(stat -c %s README.md)
[ "$bytes" -le 12288 ] || tell "README.md has $bytes bytes, more than 12 KB: what only some readers need belongs into train/manual/"
for manual in train/manual/*.md; do
    grep -qF "($manual)" README.md || tell "README.md does not lead to $manual"
done
[ $bad -eq 0 ]
echo "links: $links links, $names names of files"
