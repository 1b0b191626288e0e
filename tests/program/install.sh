#!/usr/bin/env bash
# What `cmake --install` and `cpack` make: a program that runs from any folder and finds its modules, manual pages for every command and
# key, completion, configurations and batch scripts; a package with what it depends on. (On a Debian of its own: clean_debian.sh.)
. "$SOURCE/tests/program/small.sh"

cmake --install "$BUILD" --prefix "$PWD/prefix" --component gdn > install.log || fail "cmake --install: $(tail -n 5 install.log)"
gdn=$PWD/prefix/bin/gdn
share=$PWD/prefix/share

# The program, the configurations as examples, and modules: with none it says where it has looked.
mkdir elsewhere
(cd elsewhere && expect 0 "$gdn" train ../small.yaml --set data.train=../text.txt --set train.steps=2 --set train.eval_interval=0 --run-dir run > out.txt 2>&1)
expect 0 "$gdn" plan "$share/gdn/configs/tiny.yaml" > plan.out
if [ -e "$BUILD/libgdn_emulated.so" ]; then
    emulated=(train small.yaml --set train.steps=1 --set train.eval_interval=0 --set device=emulated --run-dir emulated)
    expect 2 "$gdn" "${emulated[@]}" 2> module.err > /dev/null
    grep -q "no libgdn_emulated.so in $PWD/prefix/bin or " module.err || fail "modules: $(cat module.err)"
    ! grep -q "$BUILD" module.err || fail "an installed program looks for modules in the build folder: $(cat module.err)"
    libraries=$PWD/prefix/$(sed -n 's/^CMAKE_INSTALL_LIBDIR:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
    mkdir -p "$libraries/gdn"
    ln -s "$BUILD/libgdn_emulated.so" "$libraries/gdn/"
    expect 0 "$gdn" "${emulated[@]}" > module.out 2>&1
fi

# Manual pages: one a command, with all of its options; every key in gdn-config.
commands=$("$gdn" --help | sed -nE 's/^  gdn ([a-z]+)  +[^ ].*/\1/p')
[ "$(wc -w <<< "$commands")" -ge 10 ] || fail "gdn --help names $commands"
for command in $commands; do
    page=$share/man/man1/gdn-$command.1
    [ -s "$page" ] || fail "no manual page of gdn $command"
    for option in $("$gdn" "$command" --help | sed -nE 's/^ +(--[a-z-]+).*/\1/p'); do
        grep -qF -- "${option//-/\\-}" "$page" || fail "$page: no $option"
    done
done
keys=$("$gdn" train --help-config | sed -nE 's/^([a-z_]+(\.[a-z0-9_]+)*): .*/\1/p')
[ "$(wc -l <<< "$keys")" -ge 90 ] || fail "--help-config names $(wc -l <<< "$keys") keys"
for key in $keys; do grep -q "^$key:" "$share/man/man5/gdn-config.5" || fail "gdn-config.5: no $key"; done
if command -v man > /dev/null; then
    for page in "$share"/man/man?/*; do
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 > page.txt | grep . && fail "$page: warnings"
        grep -q '^NAME' page.txt || fail "$page cannot be read"
    done
fi

# The manual: README.md with the pages and the picture that it leads to.
leads=$(grep -oE '\]\(train/[^()]+\)' "$share/doc/gdn/README.md" | sed 's/^](//; s/[#)].*$//' | grep -v '^train/README' | sort -u)
[ "$(wc -w <<< "$leads")" -ge 10 ] || fail "the installed README.md leads to $leads"
for page in $leads; do [ -s "$share/doc/gdn/$page" ] || fail "$share/doc/gdn: no $page"; done

# Completion, as an interactive bash asks for it, where a command may fail: LINE, then all that is offered.
set +e +o pipefail
load() { . "$share/bash-completion/completions/gdn"; } # in a function, as bash-completion does
load
offers() {
    COMP_LINE="$gdn $1" COMP_POINT=${#COMP_LINE} COMPREPLY=()
    read -ra COMP_WORDS <<< "$COMP_LINE"
    _gdn
    [ "${COMPREPLY[*]}" = "$2" ] || fail "completion of 'gdn $1' offers '${COMPREPLY[*]}' instead of '$2'"
}
offers tr train
offers 'data ' 'write tokenizer show sample --help'
offers 'data write --outp' '--output='
offers 'train --set mesh.sequ' 'mesh.sequence_parallel='
offers 'train --set train.schedule=' 'cosine linear constant wsd'
offers 'train --set train.schedule=c' 'cosine constant'
offers 'train --set=mesh.overlap=t' 'true'
offers 'train --set train.lr=' ''
offers 'train --resume ' 'auto none'
offers 'train --resume=n' 'none'
offers 'train a/b.yaml ' '' 2> errors
[ ! -s errors ] || fail "completion behind a file: $(cat errors)"
offers 'train sma' '' # a file, which bash completes by itself
COMP_WORDBREAKS=${COMP_WORDBREAKS//=/} offers 'train --set=mesh.overlap=t' '--set=mesh.overlap=true'
set -e -o pipefail

# The package: what it needs is named, and nothing in it lies outside /usr.
if command -v dpkg-deb > /dev/null && command -v dpkg-shlibdeps > /dev/null; then
    cpack --config "$BUILD/CPackConfig.cmake" -B "$PWD/package" > cpack.log 2>&1 || fail "cpack: $(tail -n 5 cpack.log)"
    deb=$(echo package/gdn_*.deb)
    dpkg-deb -f "$deb" Depends > depends
    for library in libc6 libhdf5-openmpi libopenmpi libjansson4 libonig5 libutf8proc libzstd1 zlib1g openmpi-bin; do
        grep -q "$library" depends || fail "the package does not depend on $library: $(cat depends)"
    done
    dpkg-deb -x "$deb" unpacked
    [ "$(ls unpacked)" = usr ] || fail "the package has $(ls unpacked)"
    (cd elsewhere && expect 0 ../unpacked/usr/bin/gdn --version > /dev/null)
fi
echo "install: all there"
