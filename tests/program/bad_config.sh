# Bad usage and bad configurations, seen from outside: status 2, one message on standard error that begins with "gdn: ", nothing on
# standard output, no run directory. $GDN is the program; the scratch folder is empty.

# In a build with sanitizers, the leak checker's list of suppressions would count as output.
export LSAN_OPTIONS=${LSAN_OPTIONS:+$LSAN_OPTIONS:}print_suppressions=0

mistakes=0
mistake() {
    echo "bad_config.sh: $*"
    mistakes=$((mistakes + 1))
}

# refused WORDS COMMAND…: the command is refused, with a message of at most five lines that has WORDS.
refused() {
    local words=$1 status=0
    shift
    "$@" > out 2> err || status=$?
    [ $status -eq 2 ] || mistake "status $status, not 2: $*"
    [ "$(grep -c '^gdn: ' err)" -eq 1 ] || mistake "not one message: $*: $(cat err)"
    [ "$(wc -l < err)" -le 5 ] || mistake "more than five lines: $*: $(cat err)"
    [ ! -s out ] || mistake "standard output: $*: $(cat out)"
    grep -qF -e "$words" err || mistake "'$words' is missing: $*: $(cat err)"
    [ ! -e runs ] && [ ! -e r ] || mistake "a run directory was made: $*"
}

# refused_in_parallel WORDS COMMAND…: the same on two ranks, where mpirun adds words of its own.
refused_in_parallel() {
    local words=$1 status=0
    shift
    mpirun -n 2 "$@" > out 2> err || status=$?
    [ $status -eq 2 ] || mistake "mpirun: status $status, not 2: $*: $(cat err)"
    [ "$(grep -cF -e "$words" err)" -eq 1 ] || mistake "mpirun: '$words' is not said once: $*: $(cat err)"
    [ "$(grep -c '^gdn: ' err)" -eq 1 ] || mistake "mpirun: not one message: $*: $(cat err)"
    ! grep -q MPI_ABORT err || mistake "mpirun: MPI_Abort was called: $*"
}

# answered WORDS COMMAND…: status 0, WORDS on standard output, nothing on standard error.
answered() {
    local words=$1 status=0
    shift
    "$@" > out 2> err || status=$?
    [ $status -eq 0 ] || mistake "status $status, not 0: $*"
    [ ! -s err ] || mistake "standard error: $*: $(cat err)"
    grep -qF -e "$words" out || mistake "'$words' is missing: $*: $(cat out)"
}

printf 'the quick brown fox jumps over the lazy dog\n%.0s' {1..200} > text.txt
cat > good.yaml << END
model: {vocab_size: 257, hidden_size: 16, num_layers: 2, num_heads: 2, intermediate_size: 16}
data: {train: text.txt}
END
"$GDN" data write --format hdf5 --output text.h5 text.txt > /dev/null
sed 's/num_layers: 2/num_layers: two/' good.yaml > word.yaml
sed 's/hidden_size: 16/hidden_size: 15/' good.yaml > odd.yaml
sed '/^data/d' good.yaml > no_data.yaml
printf 'train: {lr: 1\n' > broken.yaml

# usage
refused "a command is missing" "$GDN"
refused "did you mean gdn train?" "$GDN" trian good.yaml
refused "unknown command 'xyzzy'" "$GDN" xyzzy
refused "unknown option '--verion'" "$GDN" --verion
refused "gdn train: an argument is missing" "$GDN" train
refused "did you mean --run-dir?" "$GDN" train good.yaml --rundir r
refused "--set needs a value" "$GDN" train good.yaml --set
refused "'word.yaml' is an argument too many" "$GDN" train good.yaml word.yaml
for command in train eval generate data checkpoint bench; do
    answered "Usage: gdn $command" "$GDN" $command --help
    grep -qF "gdn $command" <("$GDN" --help) || mistake "gdn --help does not list $command"
done
answered "Exit status" "$GDN" --help
answered "model.delta.kind: bottleneck" "$GDN" train --help-config
answered "commit:" "$GDN" --version
if "$GDN" --help > /dev/full 2> err; then mistake "--help to a full disk gives status 0"; fi

# configurations
refused "missing.yaml: the configuration cannot be read" "$GDN" train missing.yaml
refused "word.yaml, line 1: model.num_layers is 'two'" "$GDN" train word.yaml --run-dir r
refused "broken.yaml, line" "$GDN" train broken.yaml --run-dir r
refused "model.hidden_size: 15 (line 1)" "$GDN" train odd.yaml --run-dir r
refused "data.train" "$GDN" train no_data.yaml --run-dir r
refused "data.train with train.sequence_length 9000" "$GDN" train good.yaml --set train.sequence_length=9000 --run-dir r
refused "data.validation_fraction 0.001 with train.sequence_length" "$GDN" train good.yaml --set data.validation_fraction=0.001 --run-dir r
refused "train.eval_interval is 5, but data.validation" "$GDN" train good.yaml --set train.eval_interval=5 --run-dir r
refused "model.vocab_size 100" "$GDN" train good.yaml --set model.vocab_size=100 --set data.train=text.h5 --set data.format=hdf5 --run-dir r
refused "checkpoint.init_from: " "$GDN" train good.yaml --set checkpoint.init_from=text.txt --run-dir r
refused "checkpoint.init_from: . is a folder without config.json: an HDF5 file is expected" "$GDN" train good.yaml --set checkpoint.init_from=. --run-dir r
refused "by selective or full, one of which is expected" "$GDN" train good.yaml --set train.recompute_every=2 --run-dir r
refused "--resume 'nowhere'" "$GDN" train good.yaml --resume nowhere --run-dir r
refused "--set train.lr=fast: train.lr is 'fast'" "$GDN" train good.yaml --set train.lr=fast --run-dir r
refused "did you mean train.lr?" "$GDN" train good.yaml --set lr=1 --run-dir r
refused "device cuda: " "$GDN" train good.yaml --set device=cuda --run-dir r
refused "train.precision: device cpu computes in fp32 and bf16 alone" "$GDN" train good.yaml --set train.precision=fp16 --run-dir r
refused "absent.txt" "$GDN" train good.yaml --set data.train=absent.txt --run-dir r
refused "text.h5 is an HDF5 file, which format text cannot read; format hdf5 is expected" "$GDN" train good.yaml --set data.train=text.h5 --run-dir r
gzip -k text.txt
refused "text.txt.gz is compressed by gzip" "$GDN" train good.yaml --set data.train=text.txt.gz --run-dir r
refused "257" "$GDN" train good.yaml --set model.vocab_size=256 --run-dir r
refused "mesh.tensor" "$GDN" train good.yaml --set mesh.tensor=2 --run-dir r

# on two ranks
refused_in_parallel "missing.yaml: the configuration cannot be read" "$GDN" train missing.yaml
refused_in_parallel "model.num_layers is 'two'" "$GDN" train word.yaml --run-dir r
refused_in_parallel "unknown option --sett" "$GDN" train good.yaml --sett x=1

[ $mistakes -eq 0 ]
