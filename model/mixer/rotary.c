/* A kind of scaling is a row: a function of one frequency. Kinds that look at the sequence in progress, or
 * change attention's scores, are none of these. */
#include "model/mixer/rotary.h"
#include "kernels/base/append.h"

#include <math.h>
#include <stddef.h>

struct kind {
    const char *name;
    double (*scale)(const struct rope_scaling *s, double frequency);  /* NULL: as it is */
    const struct conflict *(*conflict)(const struct rope_scaling *s); /* NULL: all is right */
};

/* A factor that nothing would use is one that was meant for a kind. */
static const struct conflict *unscaled_conflict(const struct rope_scaling *s) {
    static const struct conflict unused = {
        "a factor above 1 is for a kind of scaling: linear or llama3 is expected, or factor 1",
        {"model.rope_scaling.kind", "model.rope_scaling.factor"}};
    return s->factor > 1 ? &unused : NULL;
}

/* Positions divided by the factor (Chen et al. 2023). */
static double linear(const struct rope_scaling *s, double frequency) {
    return frequency / s->factor;
}

/* Llama 3.1's: wavelengths (positions of a whole turn) below original/high_freq_factor stay, those above
 * original/low_freq_factor are stretched by the factor, and between the two a mean of both moves over. */
static double llama3(const struct rope_scaling *s, double frequency) {
    const double low = s->low_freq_factor, high = s->high_freq_factor,
                 turns = s->original_max_position_embeddings * frequency / (2 * 3.14159265358979323846),
                 stays = (turns - low) / (high - low);
    if (turns > high) return frequency;
    if (turns < low) return frequency / s->factor;
    return (1 - stays) * frequency / s->factor + stays * frequency;
}

static const struct conflict *llama3_conflict(const struct rope_scaling *s) {
    static const struct conflict order = {
        "high_freq_factor must be above low_freq_factor",
        {"model.rope_scaling.low_freq_factor", "model.rope_scaling.high_freq_factor"}};
    return s->high_freq_factor > s->low_freq_factor ? NULL : &order;
}

static const struct kind kinds[] = {
    {"none", .conflict = unscaled_conflict}, {"linear", linear, NULL}, {"llama3", llama3, llama3_conflict}};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *rotary_words(void) {
    static char words[KINDS * 32];
    size_t used = 0;
    for (int i = 0; i < KINDS; i++)
        used = text_append(words, sizeof words, used, "%s%s", i ? "|" : "", kinds[i].name);
    return words;
}

const struct conflict *rotary_conflict(const struct rope_scaling *scaling) {
    const struct kind *kind = &kinds[scaling->kind];
    return kind->conflict ? kind->conflict(scaling) : NULL;
}

double rotary_frequency(const struct model_config *config, long i) {
    const struct kind *kind = &kinds[config->rope_scaling.kind];
    double frequency = pow(config->rope_theta, -2.0 * (double)i / (double)head_width(config));
    return kind->scale ? kind->scale(&config->rope_scaling, frequency) : frequency;
}
