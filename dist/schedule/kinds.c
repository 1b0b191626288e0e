/* The kinds of action and payload, one row each, and an action in words. */
#include "dist/schedule/schedule.h"

#include <stdio.h>

const struct act_kind act_kinds[ACTS] = {
    [ACT_RECEIVE] = {ROLE_RECEIVE, true, '.', "receive %t from rank %p into %w"},
    [ACT_POST] = {ROLE_POST, false, '.', "post the receive of %t from rank %p into %w"},
    [ACT_TAKE] = {ROLE_TAKE, true, '.', "take %w for %t"},
    [ACT_FORWARD] = {ROLE_PASS, false, '0', "forward chunk %c of micro-batch %m in activation set %a"},
    [ACT_PROJECT] = {ROLE_PASS, true, '0', "project %t into %w"},
    [ACT_BACKWARD] = {ROLE_PASS, false, 'a',
                      "backward chunk %c of micro-batch %m, layers %l to %e, in activation set %a%k"},
    [ACT_WEIGHTS] =
        {ROLE_PASS, false, 'A',
         "gradients of weights of chunk %c of micro-batch %m, layers %l to %e, from weight set %s"},
    [ACT_UNPROJECT] = {ROLE_PASS, false, 'a', "unproject %t from %w"},
    [ACT_SEND] = {ROLE_SEND, false, '.', "send %t to rank %p from %w"},
    [ACT_FREE] = {ROLE_FREE, false, '.', "free %w of %t"},
    [ACT_SHARE] = {ROLE_MEET, false, '=', "sum shared gradients over the stages"},
    [ACT_REDUCE] = {ROLE_START, false, '=', "reduce bucket %i"},
    [ACT_FINISH] = {ROLE_WAIT, false, '=', "finish bucket %i"},
    [ACT_NORM] = {ROLE_MEET, false, '=', "global gradient norm"},
    [ACT_UPDATE] = {ROLE_UPDATE, false, '+', "update bucket %i"},
    [ACT_GATHER] = {ROLE_START, false, '.', "gather bucket %i"},
    [ACT_GATHERED] = {ROLE_WAIT, false, '=', "bucket %i gathered"},
};

const struct payload_kind payload_kinds[PAYLOADS] = {
    [PAYLOAD_SOURCE] = {false, false, "source %i"},
    [PAYLOAD_STREAM_GRADIENT] = {false, true, "the stream's gradient at node %i"},
    [PAYLOAD_SOURCE_GRADIENT] = {false, true, "the gradient of source %i"},
    [PAYLOAD_PROJECTED] = {true, false, "the projected source of edge %i"},
    [PAYLOAD_PROJECTED_GRADIENT] = {true, true, "the projected gradient of edge %i"},
};

/* ------------------------------------------------------------------------------------------- in words */

enum { ACTION_TEXT = 160 };

/* The number that a letter of a row's text stands for. */
static int field(const struct action *a, char letter) {
    switch (letter) {
    case 'a':
        return a->activation_set;
    case 'b':
        return a->buffer;
    case 'c':
        return a->chunk;
    case 'e':
        return a->end;
    case 'i':
        return a->index;
    case 'l':
        return a->layer;
    case 'm':
        return a->micro_batch;
    case 's':
        return a->weight_set;
    default:
        return a->peer;
    }
}

static const char *place(const struct action *a) {
    if (a->buffer < 0) return "activation set %a";
    return payload_is_narrow(a->payload) ? "narrow block %b" : "block %b";
}

/* Writes a row's text with the action's fields from text[*n] on; what there is no room for is left out. */
static void write_text(const struct action *a, const char *form, char text[ACTION_TEXT], int *n) {
    for (; *form && *n < ACTION_TEXT - 1; form++) {
        if (*form != '%') {
            text[(*n)++] = *form;
            continue;
        }
        if (*++form == 't') {
            write_text(a, payload_kinds[a->payload].text, text, n);
            write_text(a, " of micro-batch %m", text, n);
        } else if (*form == 'w') {
            write_text(a, place(a), text, n);
        } else if (*form == 'k') {
            write_text(a, a->weight_set < 0 ? "" : ", into weight set %s", text, n);
        } else {
            *n += snprintf(text + *n, (size_t)(ACTION_TEXT - *n), "%d", field(a, *form));
        }
    }
}

void action_text(const struct action *a, char text[ACTION_TEXT]) {
    int n = 0;
    if ((unsigned)a->act >= ACTS) {
        snprintf(text, ACTION_TEXT, "unknown action %d", (int)a->act);
        return;
    }
    write_text(a, act_kinds[a->act].text, text, &n);
    text[n < ACTION_TEXT ? n : ACTION_TEXT - 1] = 0;
}
