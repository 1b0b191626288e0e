#!/usr/bin/env bash
# gdn rules: its figures are those of the checkpoint's tensors, at the layer and source that these belong to.
. "$SOURCE/tests/program/small.sh"

sed -i 's/steps: 40/steps: 15/' small.yaml
rules='model.rules=[{"kind":value,"form":embedding,"layers":[1,2]},{"kind":dense,"form":dynamic,"hidden":4}]'
train 1 learned --set model.num_layers=4 --set model.delta.distances=[] --set "$rules"
expect 0 "$GDN" rules learned --json > json
[ "$(wc -l < json)" -eq 1 ] || fail "not one line: $(cat json)"

# Value AT of tensor N, as of h5dump's elements, of which several are one by their root mean square.
value() { "$JSON_VALUE" "$@" < json | tr -d '"' || fail "no $*: $(cat json)"; }
same_as_dataset() { # N NAME LAYER SOURCE DATASET
    local at layer source found='' stored
    [ "$(value learned "$1" name)" = "$2" ] || fail "tensor $1 is not $2: $(cat json)"
    for ((at = 0; ; at++)); do
        layer=$("$JSON_VALUE" learned "$1" values $at layer < json 2> /dev/null) || break
        source=$(value learned "$1" values $at source)
        if [ "$layer $source" = "$3 $4" ]; then found=$(value learned "$1" values $at value); fi
    done
    [ -n "$found" ] || fail "$2 has nothing of layer $3 and source $4: $(cat json)"
    stored=$(h5dump -y -w 1 -m %.9g -d "/model/layers/$5" learned/checkpoints/step_00000015/checkpoint.h5 |
        LC_ALL=C awk '/DATA \{/ { inside = !n; next } /\}/ { inside = 0 } # attributes have data too, behind those
            inside { gsub(/,/, ""); n++; sum += $1 * $1; only = $1 } END { printf "%.9g", n == 1 ? only : sqrt(sum / n) }')
    LC_ALL=C awk -v a="$found" -v b="$stored" 'BEGIN { d = a - b; exit !(b != 0 && d * d < 1e-14 * b * b) }' || # h5dump's 9 digits
        fail "$2 of layer $3 and source $4 is $found in place of $stored"
}
names=$(for n in 0 1 2 3 4 5; do value learned $n name; done | paste -sd' ')
[ "$names" = "value.embed.weight value.gate.weight value.weight dense.weight dense.out.weight dense.in.weight" ] || fail "other tensors: $names"
same_as_dataset 0 value.embed.weight 2 null 2/value/embed/weight
same_as_dataset 2 value.weight 1 null 1/value/weight
same_as_dataset 3 dense.weight 3 -1 3/dense/4/weight
same_as_dataset 3 dense.weight 3 2 3/dense/1/weight
same_as_dataset 4 dense.out.weight 2 0 2/dense/2/out/weight
same_as_dataset 5 dense.in.weight 1 null 1/dense/in/weight
[ "$(value learned 3 number) $(value learned 4 number)" = "true false" ] || fail "numbers and root mean squares: $(cat json)"

# For people: the same figures, a line a layer; a picture.
expect 0 "$GDN" rules learned --svg learned.svg > text
[ "$(grep -A5 '^dense.weight, of each source: the number itself$' text | awk '$1 == 3 { print NF }')" -eq 5 ] || fail "no line of layer 3 with four sources: $(cat text)"
printed=$(grep -A5 '^dense.weight' text | awk '$1 == 3 { print $2 }')
at=$(for ((i = 0; i < 9; i++)); do [ "$(value learned 3 values $i layer) $(value learned 3 values $i source)" != "3 -1" ] || echo $i; done)
[ "$printed" = "$(LC_ALL=C printf '%+.4f' "$(value learned 3 values "$at" value)")" ] || fail "$printed of layer 3 and the embedding: $(cat text json)"
grep -q "dense.weight" learned.svg && grep -q "value.gate.weight" learned.svg || fail "tensors are missing in the picture"

# Delta connections are a rule too; a model without any has nothing to show.
train 1 connected --set model.delta.distances=[1,2]
expect 0 "$GDN" rules connected > text
grep -q '^delta.gate_in.weight, of each source: root mean square$' text || fail "no connections: $(cat text)"
train 1 plain --set model.delta.distances=[]
refused "no rules between layers" "$GDN" rules plain
refused "no rules between layers" "$GDN" rules plain --svg plain.svg
[ ! -e plain.svg ] || fail "a picture of nothing"
refused "CHECKPOINT" "$GDN" rules
