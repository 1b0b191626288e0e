/* Pieces of a text from matches of a pattern and what lies between them. */
#include "data/tokenizer/pre_tokenizer.h"
#include "kernels/base/status.h"

static int hand_on(struct splitter *s) {
    bool held = s->held;
    s->held = false;
    return held ? walk_step(s->walk, s->step, passage_part(s->all, s->start, s->end)) : GDN_OK;
}

/* Whether a part is one piece with the one that is held. */
static bool joins(const struct splitter *s, bool match) {
    if (!s->held) return false;
    switch (s->behavior) {
    case CONTIGUOUS:
        return match == s->last_match;
    case MERGED_WITH_PREVIOUS:
        return match && !s->last_match;
    case MERGED_WITH_NEXT:
        return !match && s->held_match;
    default:
        return false;
    }
}

int splitter_add(struct splitter *s, size_t start, size_t end, bool match) {
    if (s->behavior == REMOVED && match) return GDN_OK;
    if (joins(s, match)) {
        s->end = end;
        s->held_match = false;
    } else {
        TRY(hand_on(s));
        s->start = start;
        s->end = end;
        s->held = true;
        s->held_match = match;
    }
    s->last_match = match;
    return GDN_OK;
}

int splitter_end(struct splitter *splitter) {
    return hand_on(splitter);
}

int splitter_search(struct splitter *splitter, const struct pattern *pattern, OnigRegion *region,
                    bool invert) {
    struct search search = search_begin(pattern, region, splitter->all.text, splitter->all.length);
    size_t done = 0, start, end;
    for (bool found;;) {
        TRY(search_next(&search, &start, &end, &found));
        if (!found) break;
        if (done < start) TRY(splitter_add(splitter, done, start, invert));
        TRY(splitter_add(splitter, start, end, !invert));
        done = end;
    }
    if (done < splitter->all.length) TRY(splitter_add(splitter, done, splitter->all.length, invert));
    return splitter_end(splitter);
}
