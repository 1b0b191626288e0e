#!/usr/bin/env bash
# From a fresh checkout to a trained model in minutes: installs, builds, prepares a text, trains on two ranks with a
# stop and a resume from the checkpoint in the middle, evaluates and writes a sample. Run it again at will: what is
# done is not done again. To train anew, remove runs/tiny first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

config=configs/tiny.yaml
run=runs/tiny # gdn would choose it too
steps=$(sed -n 's/^ *steps: *\([0-9]*\).*/\1/p' $config)
half=$((steps / 2))

say() { printf '\n== %s\n' "$*"; }
show() { # prints a command as one would type it, then runs it
    printf '$%s\n' "$(printf ' %s' "${@@Q}" | sed "s/'\([A-Za-z0-9_./=,:-]*\)'/\1/g")"
    "$@"
}

# Prints the step of the newest checkpoint, 0 where there is none.
done_steps() {
    local latest=step_0
    [ -f $run/checkpoints/latest ] && latest=$(cat $run/checkpoints/latest)
    echo $((10#${latest#step_}))
}

launch=(mpirun -n 2)
# Ctrl-C saves a checkpoint after the step in progress: mpirun kills later than that, even on a slow machine. It would also take
# twice these seconds to end after the stop below, so that goes without.
patient=(--mca odls_base_sigkill_timeout 60)
# mpirun's ranks do not see the terminal that it writes to: this tells them its width, for a live progress line.
if [ -t 1 ]; then COLUMNS=$(stty size < /dev/tty | cut -d' ' -f2) && export COLUMNS; fi
# Open MPI refuses to run as root, as in containers, unless told twice.
if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

say "What is needed"
if command -v apt-get > /dev/null; then train/setup.sh; fi # elsewhere CMake says what is missing

# Open MPI gives each of two ranks a core of its own, and gdn then a thread to each. With one core only, of two threads or one, they take turns.
"${launch[@]}" true > /dev/null 2>&1 || launch+=(--oversubscribe)
# -q: without it mpirun reports any status but 0 in a dozen lines that look like a crash. Later versions than 4 have no such option.
quiet=()
if mpirun --version 2> /dev/null | grep -q '(Open MPI) 4\.'; then quiet=(-q); fi

say "Build: build/gdn"
if [ ! -f build/CMakeCache.txt ]; then
    generator=()
    if command -v ninja > /dev/null; then generator=(-G Ninja); fi
    show cmake -S . -B build ${generator[@]+"${generator[@]}"}
fi
show cmake --build build -j "$(nproc)" --target gdn

say "A text to train on"
train/corpus.sh

train=(build/gdn train "$config" --run-dir "$run")
if [ "$(done_steps)" -ge "$steps" ]; then
    say "Training is complete: $(done_steps) steps in $run (remove that directory to train anew)"
else
    if [ "$(done_steps)" -lt $half ]; then
        say "Training, to be stopped after $half of $steps steps: status 3 says that a checkpoint was saved"
        status=0
        show "${launch[@]}" ${quiet[@]+"${quiet[@]}"} "${train[@]}" --set train.stop_at=$half || status=$?
        if [ $status -ne 3 ]; then
            echo "quickstart.sh: training ended with status $status, not 3; without -q mpirun says more" >&2
            exit 1
        fi
    fi
    say "The same command resumes from the checkpoint of step $(done_steps)"
    show "${launch[@]}" "${patient[@]}" "${train[@]}"
fi

say "Loss on the text's last part, which training never read"
show build/gdn eval $run

say "A sample"
show build/gdn generate $run --prompt "And the LORD said unto " --length 300 --temperature 0.8 --top-p 0.95 --seed 1

cat << END

== Done, in $((SECONDS / 60)) min $((SECONDS % 60)) s. The program is build/gdn (build/gdn --help), the text lies in corpus/kjv, and
the run in $run: config.yaml (every setting), metrics.jsonl (a line a step), tensorboard/ (the same as curves), and
checkpoints/$(cat $run/checkpoints/latest)/checkpoint.h5 (weights and optimiser: h5ls -r shows them). To train on your own text, copy
$config, change data.train and run: mpirun ${patient[*]} -n 2 build/gdn train YOUR.yaml
END
