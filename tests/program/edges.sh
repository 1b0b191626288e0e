#!/usr/bin/env bash
# Active edges that are not a layer's first (tests/rows/edges.c), introduced one after the other while training: what rows.sh says,
# connections held whole by tensor ranks, and a model trains, is measured and stored as one whose edges are no others.
. "$SOURCE/tests/program/rows.sh"
export GDN_TEST_EDGES=some

row mean run_mean layers/7/delta/4/gate_in/weight
on 1.2.1 mean run_mean_connection --set mesh.delta=connection --set mesh.sequence_parallel=true
close run_mean run_mean_connection
on 1.2.2 adaptive run_adaptive_1.2.2 --set mesh.delta=connection
on 1.1.1 adaptive run_adaptive
close run_adaptive run_adaptive_1.2.2
on 1.1.4 attention run_attention_1.1.4 --set mesh.interleave=2
on 1.1.1 attention run_attention
close run_attention run_attention_1.1.4

# As with no others in the table: what is trained, measured, stored and written.
for name in mean attention learned heads full adaptive_learned; do
    for edges in some only; do
        GDN_TEST_EDGES=$edges on 1.1.1 "$name" "${edges}_$name" --set train.gate_interval=6 --set delta_store.interval=6 \
            --set delta_store.ratio=0.5 --set monitor.interval=5
        GDN_TEST_EDGES=$edges expect 0 "$GDN" generate "${edges}_$name" --prompt the --length 30 > "${edges}_$name.text"
        grep '"event":"gates"' "${edges}_$name/metrics.jsonl" | sed 's/,"gate":.*//' > "${edges}_$name.gates"
        grep -o '"active_connections":[0-9]*' "${edges}_$name/metrics.jsonl" > "${edges}_$name.active"
        (cd "${edges}_$name" && find deltas -name '*.h5' | sort) > "${edges}_$name.stored"
    done
    close "some_$name" "only_$name"
    for what in gates active stored text; do
        [ -s "some_$name.$what" ] || fail "$name: no $what"
        cmp "some_$name.$what" "only_$name.$what" || fail "$name: $what differ"
    done
done

# Other edges have stayed as they were drawn, and there are some.
if "$GDN" eval some_mean > eval.log 2>&1; then :; else fail "$(cat eval.log)"; fi
h5ls -r some_mean/checkpoints/step_00000020/checkpoint.h5 | grep -c "/delta/" > some
h5ls -r only_mean/checkpoints/step_00000020/checkpoint.h5 | grep -c "/delta/" > only
[ "$(cat some)" -gt "$(cat only)" ] || fail "$(cat some) tensors of connections, and $(cat only)"
