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

# Corpora of packages that are fetched: with an apt-get and a dpkg-deb that have only the beginning of one, an error, and no directory.
printf '#!/bin/sh\n[ "$1" = depends ] || : > dict-gcide_1_all.deb\n' > bin/apt-get
cat > bin/dpkg-deb << 'END'
#!/bin/sh
mkdir -p usr/share/dictd
printf '\n00-database-info\n   A notice.\n\nA \\A\\ (named [=a]), n.\n   The first letter.\n   [1913 Webster]\n\n   It is a vowel.\n\nAam \\Aam\\, n.\n   A measure.\n' | gzip > usr/share/dictd/gcide.dict.dz
END
chmod +x bin/apt-get bin/dpkg-deb
if PATH=$PWD/bin:$PATH "$SOURCE/train/corpus.sh" dictionary "$PWD/words" 2> message; then fail "an incomplete dictionary was accepted"; fi
grep -q "2 entries of the dictionary, not 100000" message || fail "unexpected: $(cat message)"
# Documentation with a picture among it: the picture is left out and named, and nothing else is.
cat > bin/dpkg-deb << 'END'
#!/bin/bash
doc=usr/share/doc/linux-doc-1/Documentation
mkdir -p $doc
for i in {1000..2019}; do echo "Text $i." > $doc/$i.rst; done
printf 'GIF89a\0\n' > $doc/1500.gif
gzip -r $doc
END
printf '#!/bin/sh\n[ "$1" = depends ] || : > linux-doc_1_all.deb\n' > bin/apt-get
PATH=$PWD/bin:$PATH "$SOURCE/train/corpus.sh" kernel "$PWD/kernel" > message
grep -qx "corpus.sh: left out, not text: 1500.gif" message || fail "unexpected: $(cat message)"
[ "$(sort kernel/*/kernel.txt)" = "$(printf 'Text %d.\n' {1000..2019})" ] || fail "other text than the documents'"
[ "$(wc -l < kernel/validation/kernel.txt)" -eq 51 ] || fail "$(wc -l < kernel/validation/kernel.txt) documents to validate on, not 51"
printf '#!/bin/sh\nexit 100\n' > bin/apt-get
if PATH=$PWD/bin:$PATH "$SOURCE/train/corpus.sh" reference "$PWD/words" 2> message; then fail "a package that cannot be had was no error"; fi
grep -q "the package dict-gcide cannot be fetched" message || fail "unexpected: $(cat message)"
[ -z "$(ls -d words* 2> /dev/null)" ] || fail "left behind: $(ls -d words*)"
status=0
"$SOURCE/train/corpus.sh" novels 2> message || status=$?
[ $status -eq 2 ] && grep -q "no corpus is called novels: kjv, dictionary, kernel, reference" message || fail "status $status: $(cat message)"
