#include "train/command/speculation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

static int find_exit(const struct model_config *config, const char *path, struct speculation *s) {
    const struct exit_config *exit = &config->exit;
    char layers[8 * MAX_EXITS] = "";
    if (s->layer < 0) s->layer = exit->layers[0];
    for (int e = 0; e < exit->num_layers; e++) {
        if (exit->layers[e] == s->layer) {
            s->exit = e;
            return GDN_OK;
        }
        snprintf(layers + strlen(layers), sizeof layers - strlen(layers), "%s%d", e ? ", " : "",
                 exit->layers[e]);
    }
    return gdn_fail(GDN_INPUT, "--draft %ld: %s has exits at layers %s alone", s->layer, path, layers);
}

int speculation_prepare(const struct model_config *config, const struct ops *ops, const char *path,
                        struct speculation *s) {
    if (!s->drafts) return GDN_OK;
    TRY(gdn_fail_in(decoder_validate_drafts(config, ops), "--speculate: %s", path));
    TRY(find_exit(config, path, s));
    s->drafted = malloc((size_t)(s->drafts * config->vocab_size) * sizeof *s->drafted);
    if (!s->drafted) return gdn_fail(GDN_INTERNAL, "out of memory for %ld drafts", s->drafts);
    return GDN_OK;
}

void speculation_free(struct speculation *s) {
    free(s->drafted);
    s->drafted = NULL;
}

long speculation_rows(const struct speculation *s) {
    return s->drafts + 1;
}

/* A draft from an exit's logits, and the whole distribution [vocab] that it is from. One whose place comes
 * again, since one before it was not accepted, is drawn by the same number: that one before did not depend on
 * it, so the number is as good as new. */
static int32_t draft(const real *logits, long vocab, const struct choosing *by, long place,
                     double *distribution) {
    double mass;
    const long kept = sample_candidates(logits, vocab, by->sampling, by->work, &mass);
    memset(distribution, 0, (size_t)vocab * sizeof *distribution);
    for (long i = 0; i < kept; i++) distribution[by->work[i].token] = by->work[i].probability / mass;
    return sample_pick(by->work, kept, mass, choosing_uniform(by, "draft", place));
}

/* The token at a place, from logits of all layers and the distribution q that its draft is from: the draft
 * with the probability min(1, p/q), else one from the positive part of p − q. Either way a token x comes with
 * the probability min(q(x), p(x)) + max(0, p(x) − q(x)) = p(x). Of likeliest tokens p and q are 0 or 1, and
 * this is p's. */
static int32_t verify(const real *logits, long vocab, const struct choosing *by, long place, const double *q,
                      int32_t drafted) {
    double mass, p = 0, left = 0;
    const long kept = sample_candidates(logits, vocab, by->sampling, by->work, &mass);
    for (long i = 0; i < kept; i++) {
        struct candidate *c = &by->work[i];
        const double of = c->probability / mass;
        if (c->token == drafted) p = of;
        c->probability = of > q[c->token] ? of - q[c->token] : 0;
        left += c->probability;
    }
    /* Nothing is left where p is q up to rounding. */
    if (choosing_uniform(by, "accept", place) * q[drafted] < p || left == 0) return drafted;
    return sample_pick(by->work, kept, left, choosing_uniform(by, "resample", place));
}

long speculation_choose(struct speculation *s, struct decoder *decoder, const struct model_config *config,
                        const struct edge_set *active, const struct choosing *by, int32_t last, long drafts,
                        int32_t *chosen) {
    const long vocab = config->vocab_size;
    int32_t token[MOST_DRAFTS + 1] = {last};
    if (!s->rounds++) clock_gettime(CLOCK_MONOTONIC, &s->begin);
    for (long i = 0; i < drafts; i++)
        token[i + 1] = draft(decoder_draft(decoder, token[i], s->exit, active), vocab, by, by->place + i,
                             s->drafted + i * vocab);
    const real *logits = decoder_feed(decoder, token, drafts + 1, active);
    long right = 0;
    while (right < drafts) {
        chosen[right] = verify(logits + right * vocab, vocab, by, by->place + right,
                               s->drafted + right * vocab, token[right + 1]);
        if (chosen[right] != token[right + 1]) break;
        right++;
    }
    if (right == drafts) chosen[right] = choosing_token(by, logits + right * vocab, vocab, by->place + right);
    decoder_take_back(decoder, drafts - right);
    s->tried += drafts;
    s->accepted += right;
    return right + 1;
}

void speculation_print(const struct speculation *s, long added) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds =
        (double)(now.tv_sec - s->begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - s->begin.tv_nsec);
    fprintf(stderr,
            "gdn: note: %ld tokens, %ld of %ld drafts of layer %ld accepted (%.1f%%), %.2f tokens a "
            "verification, "
            "%.1f tokens a second\n",
            added, s->accepted, s->tried, s->layer,
            s->tried ? 100.0 * (double)s->accepted / (double)s->tried : 0, (double)added / (double)s->rounds,
            (double)added / seconds);
}
