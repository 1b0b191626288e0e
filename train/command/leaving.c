#include "train/command/leaving.h"

#include <stdio.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/command/options.h"

int leaving_read(const char *value, struct leaving *out) {
    out->count = 0;
    for (const char *at = value;; at++) {
        char one[64];
        const size_t length = strcspn(at, ",");
        if (length >= sizeof one || out->count == MAX_EXITS)
            return gdn_fail(GDN_INPUT, "--exit '%s': one number is expected, or one for each exit", value);
        snprintf(one, sizeof one, "%.*s", (int)length, at);
        TRY(options_real("--exit", one, 0, 2, &out->threshold[out->count++]));
        at += length;
        if (!*at) return GDN_OK;
    }
}

int leaving_prepare(const struct model_config *config, const char *path, struct leaving *leaving) {
    const int exits = config->exit.num_layers;
    if (!leaving->count) return GDN_OK;
    TRY(gdn_fail_in(decoder_validate_leave(config), "--exit: %s", path));
    if (leaving->count > 1 && leaving->count != exits)
        return gdn_fail(GDN_INPUT, "--exit has %d numbers, and %s %d exits: one is expected, or one for each exit",
                        leaving->count, path, exits);
    for (; leaving->count < exits; leaving->count++) leaving->threshold[leaving->count] = leaving->threshold[0];
    return GDN_OK;
}

const real *leaving_step(struct leaving *leaving, struct decoder *decoder, int32_t token,
                         const struct edge_set *active, bool chosen) {
    int layers;
    const double *threshold = chosen && leaving->count ? leaving->threshold : NULL;
    const real *logits = decoder_leave(decoder, token, active, threshold, &layers);
    if (!chosen) return logits;
    if (!leaving->tokens++) clock_gettime(CLOCK_MONOTONIC, &leaving->begin);
    leaving->layers += layers;
    return logits;
}

void leaving_print(const struct leaving *leaving, long added, int layers) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds = (double)(now.tv_sec - leaving->begin.tv_sec) +
                           1e-9 * (double)(now.tv_nsec - leaving->begin.tv_nsec);
    fprintf(stderr, "gdn: note: %ld tokens, on the mean %.2f of %d layers a token", added,
            (double)leaving->layers / (double)leaving->tokens, layers);
    if (leaving->tokens > 1)
        fprintf(stderr, ", %.1f tokens a second", (double)(leaving->tokens - 1) / seconds);
    fputc('\n', stderr);
}
