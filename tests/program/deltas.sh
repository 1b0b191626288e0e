#!/usr/bin/env bash
# `gdn deltas`: lists, shows, rebuilds and draws what a run has stored; damaged files, bad usage, full disks.
. "$SOURCE/tests/program/small.sh"

MAKE="$BUILD/tests/train/made_up_deltas"

has() { # FILE WORDS
    grep -qF -e "$2" "$1" || fail "'$2' is not in: $(cat "$1")"
}
refused_deltas() { # WORDS COMMAND…
    refused "$1" timeout 400 "$GDN" deltas "${@:2}"
}
shown() { # COMMAND…: status 0, no message
    expect 0 timeout 400 "$GDN" deltas "$@" > out 2> err
    [ ! -s err ] || fail "$*: $(cat err)"
}

# ---- what a run stores, from training on

# On rank 1 of two, stages are apart: layer 2's sources come from the other rank.
expect 0 train 2 trained --set train.steps=21 --set mesh.pipeline=2 --set delta_store.interval=10 --set delta_store.ratio=0.25 \
    --set model.delta.stage_steps=0
shown ls trained
# Layer 0 has no source but the embedding, which this model does not use: 3 connections at steps 0, 10 and 20.
[ "$(grep -cE '^ +[0-9]+ +[12] +[12] ' out)" -eq 9 ] || fail "$(cat out)"
has out "9 differences: "
shown ls trained --step 10-20 --layer 2 --distance 1 --json
[ "$(grep -o '"step":[0-9]*,"layer":[0-9]*,"distance":[0-9]*,"source":[0-9]*' out | paste -sd' ')" = \
    '"step":10,"layer":2,"distance":1,"source":1 "step":20,"layer":2,"distance":1,"source":1' ] || fail "$(cat out)"
shown show trained --layer 2 --distance 2
has out "target layer 2, source layer 0, step 20"
shown reconstruct trained --layer 2 --distance 2 --step 10 --out trained.h5

# ---- lists of made-up differences

mkdir made && "$MAKE" made/deltas 4 2 0 50 100
shown ls made
[ "$(sed 1d out | awk '/embedding/ { e++ } /^ / { print $1, $2, $3 }  END { print e > "embeddings" }' | head -21 | md5sum)" = \
    "$(for s in 0 50 100; do for l in 0 1 2 3; do for d in 1 2; do [ "$d" -gt $((l + 1)) ] || echo "$s $l $d"; done; done; done | md5sum)" ] ||
    fail "another order: $(cat out)"
[ "$(cat embeddings)" -eq 6 ] || fail "sources: $(cat out)"
cp out by_run
shown ls made/deltas
cmp -s out by_run || fail "RUN/deltas differs from RUN"
# Sums: 21 differences of (16 + 12 + 1)·6 numbers, for 16·12.
element=$("$GDN" --version | grep -q float64 && echo 8 || echo 4)
disk=$(cat made/deltas/*/*.h5 | wc -c)
has out "21 differences: $((21 * 29 * 6 * element)) bytes for $((21 * 192 * element)), 90.6%; $disk bytes on disk in 12 files"
shown ls made --json
if mkdir $'odd\xff"\x01' 2> /dev/null && cp -r made/. $'odd\xff"\x01'; then # which some file systems do not take
    "$GDN" deltas ls $'odd\xff"\x01' --json > odd.json && iconv -f utf-8 -t utf-8 < odd.json > /dev/null && grep -qF $'odd\xef\xbf\xbd\\"\\u0001/' odd.json || fail "a name that is no UTF-8: $(cat odd.json)"
fi
if command -v python3 > /dev/null; then python3 -c 'import json, sys; assert len(json.load(open("out"))["deltas"]) == 21' || fail "$(cat out)"; fi
shown ls made --layer 1,3 --step 50-100 --distance 2
[ "$(grep -c '^ ' out)" -eq 5 ] || fail "$(cat out)"

shown show made --layer 3
[ "$(grep -c '^layer 3, ' out)" -eq 2 ] && has out "step 100" || fail "$(cat out)"
shown show made --layer 3 --distance 2 --step 50
has out "layer 3, distance 2: target layer 3, source layer 1, step 50"
has out "rank      6 of 12, relative error "
has out "singular values 1 to 6 of 6"
# Energies grow to 1 − error².
awk '/^energy by rank/ { on = 1; next } /^gates/ { on = 0 }
    on && NF { e = $2 + 0; if (e < last) exit 1; last = e; error = $4; n++ }
    END { d = last / 100 - (1 - error * error); exit !(n == 4 && d * d < 1e-6) }' out || fail "$(cat out)"

# ---- rebuilt differences, beside a product in another program

numbers() { # FILE DATASET: one a line; behind them, attributes have DATA too
    h5dump -y -w 1 -m %.17g -d "$2" "$1" | awk '/DATA \{/ { on = !blocks++; next } /\}/ { on = 0 } on { sub(",", ""); print $1 }'
}
expand() { # FILE GROUP RANK: U diag(sigma) Vt of the first columns, one number a line
    local part
    for part in U sigma Vt; do numbers "$1" "$2/$part" > "$part"; done
    awk -v rank="$3" -v stored=6 -v d=12 '
        FILENAME == "U" { u[FNR - 1] = $1 } FILENAME == "sigma" { s[FNR - 1] = $1 } FILENAME == "Vt" { v[FNR - 1] = $1 }
        END { for (t = 0; t < 16; t++) for (j = 0; j < d; j++) { x = 0
            for (i = 0; i < rank; i++) x += u[t * stored + i] * s[i] * v[i * d + j]
            printf "%.17g\n", x } }' U sigma Vt
}
if command -v h5dump > /dev/null; then
    for rank in 1 4 6; do
        rm -f delta.h5
        shown reconstruct made --layer 3 --distance 2 --step 50 --rank "$rank" --out delta.h5
        numbers delta.h5 delta > got
        expand made/deltas/step_00000050/layer_003.h5 distance_2 "$rank" > want
        # Numbers of order 1, sums of 6: a float's rounding stays below 1e-5.
        [ "$(wc -l < got)" -eq 192 ] && paste got want | awk '{ d = $1 - $2; if (d * d > 1e-10) exit 1 }' ||
            fail "rank $rank: $(paste got want | head)"
        h5dump -A delta.h5 | grep -q '"made/deltas/step_00000050/layer_003.h5"' || fail "where it is from: $(h5dump -A delta.h5)"
    done
fi
refused_deltas "delta.h5 exists; --force replaces it" reconstruct made --layer 3 --distance 2 --out delta.h5
shown reconstruct made --layer 3 --distance 2 --out delta.h5 --force
refused_deltas "--rank is 0, and the rank stored in made/deltas/step_00000100/layer_003.h5 is 6" reconstruct made --layer 3 --distance 2 --rank 0 --out r.h5
refused_deltas "--rank is 7, and the rank stored" reconstruct made --layer 3 --distance 2 --rank 7 --out r.h5
refused_deltas "--rank is '-1'" reconstruct made --layer 3 --distance 2 --rank -1 --out r.h5
refused_deltas "2 of made are chosen" reconstruct made --layer 3 --out r.h5
refused_deltas "--out FILE.h5 is missing" reconstruct made --layer 3 --distance 1
refused_deltas "no/such/folder.h5: cannot be written" reconstruct made --layer 3 --distance 1 --out no/such/folder.h5
[ ! -e r.h5 ] || fail "a refused command left a file"
# A limit on a file's size is a disk that is full at 4 KiB: no half of a file, and an old one stays.
echo old > kept.h5
(trap '' XFSZ; ulimit -f 1; expect 2 "$GDN" deltas reconstruct made --layer 3 --distance 1 --out full.h5 2> /dev/null
 expect 2 "$GDN" deltas reconstruct made --layer 3 --distance 1 --out kept.h5 --force 2> /dev/null)
[ ! -e full.h5 ] && [ "$(cat kept.h5)" = old ] && [ -z "$(find . -maxdepth 1 -name '*.partial')" ] || fail "$(ls -la)"

# ---- bad usage

refused_deltas "no/run: No such file or directory" ls no/run
mkdir empty
refused_deltas "empty has no stored differences" ls empty
refused_deltas "empty has no stored differences" plot empty --out figures
refused_deltas "layers 0, 1, 2, 3; distances 1, 2" show made --layer 9
refused_deltas "stored are the steps 0, 50, 100;" ls made --step 1-49
refused_deltas "--step is '5-'" ls made --step 5-
refused_deltas "--layer is 'x'" show made --layer x
refused_deltas "argument" ls
refused_deltas "argument too many" ls made trained
refused_deltas "unknown option --laier; did you mean --layer?" ls made --laier 3
refused_deltas "'lst' is unknown" lst made
refused_deltas "--format 'pdf'" plot made --format pdf --out figures
refused_deltas "--out DIRECTORY is missing" plot made
refused_deltas "--out: text.txt/figures cannot be created" plot made --out text.txt/figures
for command in ls show reconstruct plot; do
    shown $command --help
    has out "Example: gdn deltas $command"
done
shown --help
has out "reconstruct"
expect 1 "$GDN" deltas ls made > /dev/full 2> err
has err "standard output"
expect 1 "$GDN" deltas show made --layer 3 > /dev/full 2> err
# A reader that has enough ends the program, without a word.
{ timeout 400 "$GDN" deltas ls made 2> err; echo $? > status; } | head -1 > /dev/null
[ ! -s err ] || fail "$(cat err)"

# ---- damaged files

cp -r made damaged
flip() { # FILE BYTE
    local value
    value=$(od -An -t u1 -j "$2" -N 1 "$1")
    printf "\\x$(printf %x $((value ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2> /dev/null
}
file=damaged/deltas/step_00000050/layer_002.h5
h5dump -p -H -d distance_2/Vt "$file" > layout 2> /dev/null || true
offset=$(sed -n 's/.*OFFSET \([0-9]*\).*/\1/p' layout)
flip "$file" $((${offset:-4000} + 9))
echo "no HDF5" > damaged/deltas/step_00000100/layer_000.h5
expect 2 "$GDN" deltas ls damaged > out 2> err
has err "gdn: 2 of 12 files cannot be read; the first: damaged/deltas/step_00000100/layer_000.h5"
has out "$file distance_2 is damaged: dataset Vt does not match its checksum"
[ "$(grep -c '^ .*[0-9]$' out)" -eq 19 ] || fail "what is whole is not listed: $(cat out)"
expect 2 "$GDN" deltas ls damaged --json > out 2> /dev/null
[ "$(grep -o '"reason"' out | wc -l)" -eq 2 ] || fail "$(cat out)"
if command -v python3 > /dev/null; then python3 -c 'import json; json.load(open("out"))' || fail "$(cat out)"; fi
expect 0 "$GDN" deltas ls damaged --layer 1,3 > /dev/null
refused_deltas "step_00000100/layer_000.h5" show damaged --layer 0
refused_deltas "does not match its checksum" reconstruct damaged --layer 2 --distance 2 --step 50 --out r.h5
[ ! -e r.h5 ] || fail "a damaged difference was rebuilt"

# ---- figures

names="energy errors gates norms overview spectra"
undrawn() { # WORDS PATH: a gnuplot that is missing or fails leaves nothing
    expect 2 env PATH="$2" "$GDN" deltas plot made --out figures > out 2> err
    has err "$1"
    [ "$(grep -c '^gdn: ' err)" -eq 1 ] && [ -z "$(find figures -type f)" ] || fail "$(cat err; find figures)"
}
mkdir none bad
undrawn "Debian: package gnuplot-nox" "$PWD/none"
printf '#!/bin/sh\necho half; echo "no terminal of that name" >&2\nexit 1\n' > bad/gnuplot
chmod +x bad/gnuplot
undrawn "figures/overview.svg: gnuplot could not draw it: no terminal of that name" "$PWD/bad"
printf '#!/bin/sh\nexit 0\n' > bad/gnuplot # draws nothing
undrawn "could not draw it" "$PWD/bad"
printf '#!/bin/sh\necho "<svg> and no end, as on a full disk"\n' > bad/gnuplot
undrawn "could not draw it" "$PWD/bad"
printf '#!/bin/sh\nkill -9 $$\n' > bad/gnuplot
undrawn "ended by signal 9" "$PWD/bad"
if ! command -v gnuplot > /dev/null; then
    echo "gnuplot is missing: figures are not drawn"
    exit 0
fi

drawn() { # DIRECTORY FORMAT
    local name
    for name in $names; do
        [ -s "$1/$name.$2" ] || fail "no $1/$name.$2"
        if [ "$2" = svg ]; then has "$1/$name.svg" "</svg>"; fi
        if [ "$2" = svg ] && command -v xmllint > /dev/null; then xmllint --noout "$1/$name.svg" || fail "$1/$name.svg"; fi
        has out "$1/$name.$2"
    done
    [ "$(find "$1" -type f | wc -l)" -eq "$(wc -l < out)" ] || fail "$(ls -a "$1")"
}
shown plot made --out figures
drawn figures svg
has figures/gates.svg "made: gates, mean and one deviation"
has figures/spectra.svg "layer 3"
has figures/spectra.svg "distance 2"
shown plot made --out figures # again, over the old ones
drawn figures svg
shown plot made --out pictures --format png --layer 1-2
drawn pictures png
head -c 8 pictures/norms.png | od -An -c | grep -q 'P   N   G' || fail "no PNG"
# One step, one layer, one distance; and more layers than panels.
mkdir one && "$MAKE" one/deltas 1 1 7
shown plot one --out one_figures
drawn one_figures svg
mkdir deep && "$MAKE" deep/deltas 20 3 0 1000000
shown plot deep --out deep_figures
has deep_figures/norms.svg "(12 of 20 layers)"
has deep_figures/norms.svg "1000k" # steps by 200k
mkdir -p blocked/energy.svg # where a file should go
expect 2 timeout 400 "$GDN" deltas plot made --out blocked > out 2> err # what was drawn is told
has err "blocked/energy.svg is a directory"
[ "$(cd blocked && find . -type f | sort | paste -sd' ')" = "./overview.svg ./spectra.svg" ] || fail "$(find blocked)"
# Damaged files are told, and what is whole is drawn.
expect 2 "$GDN" deltas plot damaged --out figures > out 2> err
has err "2 of 12 files"
drawn figures svg

# A run's name is text to gnuplot, whatever it holds.
as_text() { # NAME, and how SVG has it
    cp -r made "$1"
    shown plot "$1" --out figures --layer 2
    drawn figures svg
    has figures/norms.svg "$2"
    [ ! -e ran ] || fail "gnuplot ran a run's name"
    rm -r "$1"
}
as_text '`touch ran`' '`touch ran`'
as_text $'x\'."`touch ran`"' "x'."
as_text $'a\nsystem "touch ran"\n' 'a?system'
as_text $'@x_{y}^z\\n%d<&\xff\xc3\xa4' '@x_{y}^z\n%d&lt;&amp;?'$'\xc3\xa4'
