#include "train/health/spikes.h"

#include "kernels/base/status.h"

#include <math.h>
#include <stdlib.h>

/* Places in `values`. */
enum { LENGTH, HELD, NEXT, SO_FAR, HEAD };

#define FLOOR 0.01

int spikes_create(const struct spikes_config *config, struct spikes *out) {
    *out = (struct spikes){.config = config};
    if (config->window <= 0) return 0;
    out->count = HEAD + 2 * config->window;
    out->values = calloc((size_t)out->count, sizeof *out->values);
    if (!out->values)
        return gdn_fail(GDN_INTERNAL, "out of memory for spikes.window %ld; a shorter one needs less",
                        config->window);
    out->values[LENGTH] = (double)config->window;
    return 0;
}

void spikes_free(struct spikes *spikes) {
    free(spikes->values);
    spikes->values = NULL;
}

static void empty(struct spikes *spikes) {
    for (long i = 0; i < spikes->count; i++) spikes->values[i] = 0;
}

void spikes_before_load(struct spikes *spikes) {
    empty(spikes);
}

bool spikes_loaded(struct spikes *spikes) {
    if (!spikes->values) return true;
    double window = (double)spikes->config->window;
    const double *values = spikes->values;
    if (values[LENGTH] == window && values[HELD] >= 0 && values[HELD] <= window && values[NEXT] >= 0 &&
        values[NEXT] < window)
        return true;
    empty(spikes);
    spikes->values[LENGTH] = window;
    return false;
}

/* Compares with the values at x [held], which are added in the order of their places. */
static struct spike compare(const double *x, long held, double value) {
    double sum = 0, squares = 0;
    for (long i = 0; i < held; i++) sum += x[i];
    double mean = sum / (double)held;
    for (long i = 0; i < held; i++) squares += (x[i] - mean) * (x[i] - mean);
    double deviation = sqrt(squares / (double)held), scale = fmax(deviation, FLOOR * fabs(mean));
    double z = value == mean ? 0 : (value - mean) / scale; /* all zeros so far: infinite, a spike */
    return (struct spike){.value = value, .mean = mean, .deviation = deviation, .z = z};
}

bool spikes_judge(struct spikes *spikes, double loss, double norm) {
    spikes->last = (struct spike){.kind = SPIKE_NONE, .value = NAN, .mean = NAN, .deviation = NAN, .z = NAN};
    if (!spikes->values) return false;
    if (!isfinite(loss) || !isfinite(norm)) {
        spikes->last.kind = SPIKE_NOT_FINITE;
        return true;
    }
    long window = spikes->config->window, held = (long)spikes->values[HELD];
    if (held < SPIKE_MIN || 2 * held < window) return false;
    const double *losses = spikes->values + HEAD, *norms = losses + window;
    struct spike by_loss = compare(losses, held, loss), by_norm = compare(norms, held, norm);
    bool of_norm = by_norm.z > by_loss.z;
    struct spike max = of_norm ? by_norm : by_loss;
    if (!(max.z > spikes->config->threshold)) return false;
    spikes->last = max;
    spikes->last.kind = of_norm ? SPIKE_NORM : SPIKE_LOSS;
    return true;
}

void spikes_accept(struct spikes *spikes, double loss, double norm) {
    if (!spikes->values) return;
    long window = spikes->config->window, next = (long)spikes->values[NEXT];
    spikes->values[HEAD + next] = loss;
    spikes->values[HEAD + window + next] = norm;
    spikes->values[NEXT] = (double)((next + 1) % window);
    if (spikes->values[HELD] < (double)window) spikes->values[HELD]++;
}

int64_t spikes_so_far(const struct spikes *spikes) {
    return spikes->values ? (int64_t)spikes->values[SO_FAR] : 0;
}

void spikes_set_so_far(struct spikes *spikes, int64_t count) {
    if (spikes->values) spikes->values[SO_FAR] = (double)count;
}

const char *spike_name(enum spike_kind kind) {
    static const char *const name[] = {"", "loss", "grad_norm", "not finite"};
    return name[kind];
}
