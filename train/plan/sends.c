#include "train/plan/sends.h"

#include <stdlib.h>

#include "kernels/base/status.h"

static int *last_of(const struct sends *s, int rank, const struct action *a) {
    return &s->last[(2L * rank + payload_is_narrow(a->payload)) * s->buffers + a->buffer];
}

int sends_create(const struct schedule *schedule, struct sends *out) {
    *out = (struct sends){0};
    for (int r = 0; r < schedule->ranks; r++)
        for (int i = 0; i < schedule->rank[r].count; i++)
            if (schedule->rank[r].action[i].buffer >= out->buffers)
                out->buffers = schedule->rank[r].action[i].buffer + 1;
    long count = 2L * schedule->ranks * out->buffers;
    out->last = malloc((size_t)(count + 1) * sizeof *out->last);
    out->before = malloc((size_t)(schedule->messages + 1) * sizeof *out->before);
    if (!out->last || !out->before) {
        sends_free(out);
        return gdn_fail(GDN_INTERNAL, "out of memory for the messages of a planned step");
    }
    for (long i = 0; i < count; i++) out->last[i] = -1;
    return 0;
}

void sends_free(struct sends *sends) {
    free(sends->last);
    free(sends->before);
    *sends = (struct sends){0};
}

void sends_add(struct sends *sends, int rank, const struct action *send) {
    if (send->buffer < 0) return;
    int *last = last_of(sends, rank, send);
    sends->before[send->message] = *last;
    *last = send->message;
}

int sends_last(const struct sends *sends, int rank, const struct action *action) {
    return *last_of(sends, rank, action);
}

void sends_forget(struct sends *sends, int rank, const struct action *freed) {
    *last_of(sends, rank, freed) = -1;
}
