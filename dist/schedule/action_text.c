#include "dist/schedule/schedule.h"

#include <stdio.h>

enum { ACTION_TEXT = 160 };

static void thing(const struct action *a, char text[ACTION_TEXT]) {
    static const char *const forms[] = {[PAYLOAD_SOURCE] = "source %d",
                                        [PAYLOAD_STREAM_GRADIENT] = "the stream's gradient at node %d",
                                        [PAYLOAD_SOURCE_GRADIENT] = "the gradient of source %d",
                                        [PAYLOAD_PROJECTED] = "the projected source of edge %d",
                                        [PAYLOAD_PROJECTED_GRADIENT] = "the projected gradient of edge %d"};
    int n = snprintf(text, ACTION_TEXT, forms[a->payload], a->index);
    snprintf(text + n, (size_t)(ACTION_TEXT - n), " of micro-batch %d", a->micro_batch);
}

void action_text(const struct action *a, char text[ACTION_TEXT]) {
    char what[ACTION_TEXT], where[32];
    thing(a, what);
    if (a->buffer < 0)
        snprintf(where, sizeof where, "activation set %d", a->activation_set);
    else
        snprintf(where, sizeof where, "%s %d", payload_is_narrow(a->payload) ? "narrow block" : "block",
                 a->buffer);
    switch (a->act) {
    case ACT_RECEIVE:
        snprintf(text, ACTION_TEXT, "receive %.80s from rank %d into %s", what, a->peer, where);
        break;
    case ACT_POST:
        snprintf(text, ACTION_TEXT, "post the receive of %.80s from rank %d into %s", what, a->peer, where);
        break;
    case ACT_TAKE:
        snprintf(text, ACTION_TEXT, "take %s for %.80s", where, what);
        break;
    case ACT_FORWARD:
        snprintf(text, ACTION_TEXT, "forward chunk %d of micro-batch %d in activation set %d", a->chunk,
                 a->micro_batch, a->activation_set);
        break;
    case ACT_PROJECT:
        snprintf(text, ACTION_TEXT, "project %.80s into %s", what, where);
        break;
    case ACT_BACKWARD:
        snprintf(text, ACTION_TEXT,
                 "backward chunk %d of micro-batch %d, layers %d to %d, in activation set %d", a->chunk,
                 a->micro_batch, a->layer, a->end, a->activation_set);
        break;
    case ACT_UNPROJECT:
        snprintf(text, ACTION_TEXT, "unproject %.80s from %s", what, where);
        break;
    case ACT_SEND:
        snprintf(text, ACTION_TEXT, "send %.80s to rank %d from %s", what, a->peer, where);
        break;
    case ACT_FREE:
        snprintf(text, ACTION_TEXT, "free %s of %.80s", where, what);
        break;
    case ACT_SHARE:
        snprintf(text, ACTION_TEXT, "sum shared gradients over the stages");
        break;
    case ACT_REDUCE:
        snprintf(text, ACTION_TEXT, "reduce bucket %d", a->index);
        break;
    case ACT_FINISH:
        snprintf(text, ACTION_TEXT, "finish bucket %d", a->index);
        break;
    case ACT_NORM:
        snprintf(text, ACTION_TEXT, "global gradient norm");
        break;
    case ACT_UPDATE:
        snprintf(text, ACTION_TEXT, "update bucket %d", a->index);
        break;
    case ACT_GATHER:
        snprintf(text, ACTION_TEXT, "gather bucket %d", a->index);
        break;
    case ACT_GATHERED:
        snprintf(text, ACTION_TEXT, "bucket %d gathered", a->index);
        break;
    default:
        snprintf(text, ACTION_TEXT, "unknown action %d", (int)a->act);
    }
}
