#include "train/command/writing.h"

void writing_begin(struct writing *w) {
    struct sequence *text = w->text;
    w->start = text->fed = text->count > w->context ? text->count - w->context : 0;
}

/* Where the cache is full, it starts again from the newest half. */
static void make_room(struct writing *w) {
    struct sequence *text = w->text;
    if (text->fed - w->start < w->context) return;
    decoder_reset(w->decoder);
    w->start = text->fed = text->count - w->context / 2;
}

/* Feeds all tokens that the cache lacks. The last may leave early. */
static const real *feed(struct writing *w) {
    struct sequence *text = w->text;
    const real *logits = NULL;
    while (text->fed < text->count) {
        make_room(w);
        const bool last = text->fed + 1 == text->count;
        logits = leaving_step(&w->leaving, w->decoder, text->token[text->fed++], w->active, last);
    }
    return logits;
}

/* The same but for the last token, some at a time; there is room for that one then. */
static void feed_before_last(struct writing *w) {
    struct sequence *text = w->text;
    const long rows = speculation_rows(&w->speculation);
    while (text->fed + 1 < text->count || text->fed - w->start == w->context) {
        make_room(w);
        long count = text->count - 1 - text->fed;
        if (count > rows) count = rows;
        if (count) decoder_feed(w->decoder, text->token + text->fed, count, w->active);
        text->fed += count;
    }
}

static long least(long a, long b) {
    return a < b ? a : b;
}

static long speculate(struct writing *w, long left, int32_t *chosen) {
    struct sequence *text = w->text;
    feed_before_last(w);
    /* As if tokens came one by one: drafts start nothing again. */
    const long room = w->context - (text->fed - w->start);
    const long drafts = least(w->speculation.drafts, least(room, left) - 1);
    const long count = speculation_choose(&w->speculation, w->decoder, w->model, w->active, &w->by,
                                          text->token[text->count - 1], drafts, chosen);
    text->fed += count;
    return count;
}

static long choose_one(struct writing *w, int32_t *chosen) {
    chosen[0] = choosing_token(&w->by, feed(w), w->model->vocab_size, w->by.place);
    return 1;
}

long writing_choose(struct writing *w, long left, int32_t chosen[MOST_DRAFTS + 1]) {
    const long count = w->speculation.drafts ? speculate(w, left, chosen) : choose_one(w, chosen);
    w->by.place += count;
    return count;
}
