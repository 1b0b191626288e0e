/* gdn generate --speculate: an exit drafts tokens, which all layers verify together (Leviathan et al. 2023,
 * with the model's own lower layers as in Elhoushi et al. 2024). What is chosen is distributed as all layers
 * have it, whatever the exit says; a likeliest token is theirs to the bit. */
#ifndef GDN_SPECULATION_H
#define GDN_SPECULATION_H

#include <stdbool.h>
#include <time.h>

#include "model/model.h"
#include "train/command/sample_token.h"

enum { MOST_DRAFTS = 32 };

struct speculation {
    long drafts;                         /* tokens that are drafted at a time, at most; 0: none */
    long layer;                          /* of the exit; −1: the first */
    int exit;                            /* its number */
    double *drafted;                     /* [drafts, vocab] from what distribution each draft was */
    long rounds, tried, accepted;        /* verifications, drafts, of these accepted */
    struct timespec begin;               /* when the first round began */
};

/* Finds the exit. GDN_INPUT where the model has no such, or where drafts cannot be verified; `path` is what
 * messages call it. Free with speculation_free. */
int speculation_prepare(const struct model_config *config, const struct ops *ops, const char *path,
                        struct speculation *s);
void speculation_free(struct speculation *s);
/* Tokens that are fed together, at most. */
long speculation_rows(const struct speculation *s);
/* Drafts up to `drafts` tokens behind `last`, which the decoder lacks as the only one of the text, and
 * verifies them. Chosen are one token more than were accepted, into chosen [drafts + 1]; returns how many. Of
 * these the decoder lacks the last. */
long speculation_choose(struct speculation *s, struct decoder *decoder, const struct model_config *config,
                        const struct edge_set *active, const struct choosing *by, int32_t last, long drafts,
                        int32_t *chosen);
/* "40 tokens, 21 of 57 drafts of layer 2 accepted (36.8%), 2.1 tokens a verification, 210.3 tokens a second"
 * on standard error, of `added` tokens; the time is without the prompt. */
void speculation_print(const struct speculation *s, long added);

#endif
