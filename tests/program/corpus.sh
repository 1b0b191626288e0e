#!/usr/bin/env bash
# train/corpus.sh: the text is clean and complete, a second call does nothing, and a failure leaves nothing behind.
set -euo pipefail
fail() { echo "$*"; exit 1; }
command -v bible > /dev/null || { echo "skipped: bible-kjv is not installed"; exit 77; }

"$SOURCE/train/corpus.sh" "$PWD/kjv" > first
grep -q "wrote .* bytes in 66 files" first || fail "unexpected: $(cat first)"
head -c 55 kjv/01-Ge.txt | grep -qx "In the beginning God created the heaven and the earth. " || fail "Genesis begins otherwise"
[ "$(tail -c 53 kjv/66-Rev.txt)" = "race of our Lord Jesus Christ be with you all. Amen." ] || fail "Revelation ends otherwise"
# 1,189 chapters, a paragraph each; nothing but printable ASCII; no verse numbers and no double blanks left.
[ "$(cat kjv/*.txt | grep -c .)" -eq 1189 ] || fail "$(cat kjv/*.txt | grep -c .) paragraphs, not 1189"
if cat kjv/*.txt | LC_ALL=C grep -nE '[^ -~]|[0-9]|  |^ | $' | cut -c1-100 | head -3 | grep .; then fail "not clean"; fi

touch kjv/mark
"$SOURCE/train/corpus.sh" "$PWD/kjv" | grep -q "is there" || fail "the second call wrote again"
[ -e kjv/mark ] || fail "the second call replaced the text"

# A `bible` that breaks off in the middle: an error, and no directory.
mkdir bin
printf '#!/bin/sh\necho "Ge1:1 In the beginning"\n' > bin/bible
chmod +x bin/bible
if PATH=$PWD/bin:$PATH "$SOURCE/train/corpus.sh" "$PWD/other" 2> message; then fail "an incomplete text was accepted"; fi
grep -q "1 books, not 66" message || fail "unexpected: $(cat message)"
[ -z "$(ls -d other* 2> /dev/null)" ] || fail "left behind: $(ls -d other*)"
