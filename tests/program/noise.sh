#!/usr/bin/env bash
# The gradient noise scale: what is reported follows from gradient norms of the two halves of a batch, is the same on every mesh, and
# measuring it changes no bit of the training; where it cannot be measured, a run is refused.
. "$SOURCE/tests/program/small.sh"

# What begins with the second half of the first batch, in order: 6 sequences of 16 bytes later.
sed -i 's/validation_fraction: 0.1/validation_fraction: 0.1\n  order: sequential/; s/steps: 40/steps: 8/' small.yaml
tail -c +97 text.txt > later.txt
noise=(--set train.noise_interval=4 --set train.micro_batch_size=3)
value() { lines "$1" "$2" | sed -nE "$4s/.*\"$3\":([^,}]*).*/\1/p"; } # EVENT RUN KEY LINE

expect 0 train 1 off --set train.micro_batch_size=3
expect 0 train 1 on "${noise[@]}"
equal off on
[ "$(lines noise on | sed -E 's/.*"step":([0-9]*),"sequences":([0-9]*).*/\1 \2/' | tr '\n' ' ')" = "0 12 4 12 " ] || fail "events: $(lines noise on)"

# |a|² + |b|² = 2 |g|² + 2 |D|² for the halves' gradients a and b, their mean g, and D half their difference. Three digits are left of
# single precision by the differences of squares.
expect 0 train 1 half_a --set train.batch_size=6 --set train.steps=1
expect 0 train 1 half_b --set train.batch_size=6 --set train.steps=1 --set data.train=later.txt
LC_ALL=C awk -v a="$(value step half_a grad_norm 1)" -v b="$(value step half_b grad_norm 1)" -v g="$(value step on grad_norm 1)" \
    -v variance="$(value noise on variance 1)" -v gradient="$(value noise on gradient_squared 1)" -v scale="$(value noise on noise_scale 1)" '
    function far(x, y) { x = x / y - 1; return x > 1e-3 || x < -1e-3 }
    BEGIN {
        d = (a * a + b * b) / 2 - g * g
        if (far(variance, 12 * d) || far(gradient, g * g - d) || far(scale, 12 * d / (g * g - d))) {
            print variance, "is not", 12 * d, "or", gradient, "not", g * g - d, "or", scale, "not their quotient"
            exit 1
        }
    }' || fail "the estimates are not those of the halves"

for mesh in data tensor pipeline; do
    expect 0 train 2 $mesh "${noise[@]}" --set mesh.$mesh=2
    close_to "$norms" variance noise on $mesh
    close_to "$norms" gradient_squared noise on $mesh
done
expect 0 train 3 three --set train.noise_interval=4 --set train.micro_batch_size=2 # halves that end within a rank's part
close_to "$norms" noise_scale noise on three

refused_run "half of it is no multiple of the micro-batches of 12" 1 small.yaml --set train.noise_interval=4
refused_run "would change what boundaries carry over" 1 small.yaml --set train.noise_interval=4 --set train.micro_batch_size=3 --set mesh.pipeline=2 --set mesh.compress_boundary=0.5
refused_run "no repetition of recorded passes" 1 small.yaml --set train.noise_interval=4 --set train.micro_batch_size=3 --set train.graphs=true

expect 0 "$GDN" report on --output report.html > report.log
grep -q "Gradient noise scale" report.html || fail "the report does not draw it"
expect 0 "$GDN" report off --output report.html > report.log
! grep -q "Gradient noise scale" report.html || fail "the report draws what was not measured"
