# Sourced by benchmarks.
median() { # of numbers, a line each
    LC_ALL=C sort -g | LC_ALL=C awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'
}
