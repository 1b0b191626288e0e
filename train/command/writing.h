/* gdn generate: the tokens of a text, one after the other or some at a time. */
#ifndef GDN_WRITING_H
#define GDN_WRITING_H

#include "model/model.h"
#include "train/command/leaving.h"
#include "train/command/sample_token.h"
#include "train/command/speculation.h"

/* The tokens so far, of which the last `context` at most are in the cache. */
struct sequence {
    int32_t *token;
    long count, fed; /* fed: tokens in the cache */
    long given;      /* the first so many are the prompt's */
};

/* What a text is written with. */
struct writing {
    const struct model_config *model;
    struct decoder *decoder;
    const struct edge_set *active;
    struct sequence *text;
    struct choosing by;
    long context; /* tokens that the cache holds */
    long start;   /* the first that it does */
    struct leaving leaving;
    struct speculation speculation;
};

/* The text is the prompt, and the cache is empty. */
void writing_begin(struct writing *w);
/* Chooses the next token, or some of them, of the `left` that are to be added, into `chosen`; returns how many. Whoever calls
 * adds them to the text. */
long writing_choose(struct writing *w, long left, int32_t chosen[MOST_DRAFTS + 1]);

#endif
