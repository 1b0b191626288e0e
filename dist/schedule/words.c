#include "dist/schedule/schedule.h"

#include <stdio.h>

enum { WORDS = 160 };

static void thing(const struct action *a, char words[WORDS]) {
    static const char *const forms[] = {[CARGO_NODE] = "node %d",
                                        [CARGO_GRADIENT] = "the gradient of node %d",
                                        [CARGO_DEPOSIT] = "the deposit for node %d",
                                        [CARGO_EDGE] = "the strip of edge %d",
                                        [CARGO_EDGE_GRADIENT] = "the strip gradient of edge %d"};
    int n = snprintf(words, WORDS, forms[a->cargo], a->index);
    snprintf(words + n, (size_t)(WORDS - n), " of micro-batch %d", a->micro);
}

void action_words(const struct action *a, char words[WORDS]) {
    char what[WORDS], where[32];
    thing(a, what);
    if (a->buffer < 0)
        snprintf(where, sizeof where, "slot %d", a->slot);
    else
        snprintf(where, sizeof where, "%s %d", cargo_is_strip(a->cargo) ? "strip" : "block", a->buffer);
    switch (a->act) {
    case ACT_RECEIVE:
        snprintf(words, WORDS, "receive %.60s from rank %d into %s", what, a->peer, where);
        break;
    case ACT_POST:
        snprintf(words, WORDS, "post the receive of %.60s from rank %d into %s", what, a->peer, where);
        break;
    case ACT_TAKE:
        snprintf(words, WORDS, "take %s for %.60s", where, what);
        break;
    case ACT_FORWARD:
        snprintf(words, WORDS, "forward chunk %d of micro-batch %d in slot %d", a->chunk, a->micro, a->slot);
        break;
    case ACT_PROJECT:
        snprintf(words, WORDS, "project %.60s into %s", what, where);
        break;
    case ACT_BACKWARD:
        snprintf(words, WORDS, "backward chunk %d of micro-batch %d, layers %d to %d, in slot %d", a->chunk,
                 a->micro, a->layer, a->end, a->slot);
        break;
    case ACT_UNPROJECT:
        snprintf(words, WORDS, "unproject %.60s from %s", what, where);
        break;
    case ACT_SEND:
        snprintf(words, WORDS, "send %.60s to rank %d from %s", what, a->peer, where);
        break;
    case ACT_FREE:
        snprintf(words, WORDS, "free %s of %.60s", where, what);
        break;
    case ACT_SHARE:
        snprintf(words, WORDS, "sum shared gradients over the stages");
        break;
    case ACT_REDUCE:
        snprintf(words, WORDS, "reduce bucket %d", a->index);
        break;
    case ACT_FINISH:
        snprintf(words, WORDS, "finish bucket %d", a->index);
        break;
    case ACT_NORM:
        snprintf(words, WORDS, "global gradient norm");
        break;
    case ACT_UPDATE:
        snprintf(words, WORDS, "update bucket %d", a->index);
        break;
    case ACT_GATHER:
        snprintf(words, WORDS, "gather bucket %d", a->index);
        break;
    case ACT_GATHERED:
        snprintf(words, WORDS, "bucket %d gathered", a->index);
        break;
    default:
        snprintf(words, WORDS, "unknown action %d", (int)a->act);
    }
}
