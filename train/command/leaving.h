/* gdn generate --exit and --stats: where tokens leave the model's layers (model.md, 13), and what came of it. */
#ifndef GDN_LEAVING_H
#define GDN_LEAVING_H

#include <time.h>

#include "model/model.h"

struct leaving {
    double threshold[MAX_EXITS]; /* as decoder_leave has them */
    int count;                   /* that are given; 0: no token leaves early */
    long tokens, layers;         /* that were chosen; that these have had together */
    struct timespec begin;       /* when the first was */
};

/* Reads "0.9" or "0.8,0.95". GDN_INPUT. */
int leaving_read(const char *value, struct leaving *out);
/* Gives each of the model's exits a threshold, one that is alone to all. GDN_INPUT where the model has no exits,
 * or not so many, or where tokens cannot leave it; `path` is what messages call it. */
int leaving_prepare(const struct model_config *config, const char *path, struct leaving *leaving);
/* Feeds the decoder a token, which may leave early where `chosen`, since a token is chosen of what is returned,
 * as decoder_step returns it. */
const real *leaving_step(struct leaving *leaving, struct decoder *decoder, int32_t token,
                         const struct edge_set *active, bool chosen);
/* "40 tokens, on the mean 9.51 of 12 layers a token, 210.3 tokens a second" on standard error, of `added`
 * tokens; the time is without the prompt and the token that comes with it, of which alone there is none. */
void leaving_print(const struct leaving *leaving, long added, int layers);

#endif
