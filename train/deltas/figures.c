/* What the figures of curves show. */
#include "train/deltas/figure.h"

#include "train/deltas/each.h"

#include <math.h>

static bool spectrum(const struct delta_record *r, long k, struct figure_point *out) {
    const struct factors *f = &r->factors;
    if (!(f->sigma[k - 1] > 0)) return false;
    out->x = (double)k, out->y = (double)f->sigma[k - 1] / (double)f->sigma[0];
    return true;
}

static bool energy(const struct delta_record *r, long k, struct figure_point *out) {
    if (!(r->factors.norm > 0)) return false;
    double error = deltas_error_of(&r->factors, k);
    out->x = (double)k, out->y = fmax(0, 1 - error * error);
    return true;
}

static bool gates(const struct delta_record *r, long k, struct figure_point *out) {
    (void)k;
    *out = (struct figure_point){(double)r->step, r->gate_mean, r->gate_mean - r->gate_deviation,
                                 r->gate_mean + r->gate_deviation};
    return true;
}

static bool error(const struct delta_record *r, long k, struct figure_point *out) {
    (void)k;
    out->x = (double)r->step, out->y = r->factors.error;
    return true;
}

static bool norm(const struct delta_record *r, long k, struct figure_point *out) {
    (void)k;
    out->x = (double)r->step, out->y = r->factors.norm;
    return true;
}

const struct figure delta_figures[] = {
    {.name = "spectra",
     .title = "singular values",
     .x = "singular value",
     .y = "relative to the greatest",
     .newest = true,
     .log_y = true,
     .point = spectrum},
    {.name = "energy",
     .title = "energy by rank",
     .x = "rank",
     .y = "part of the squared norm",
     .newest = true,
     .log_x = true,
     .unit = true,
     .point = energy},
    {.name = "gates",
     .title = "gates, mean and one deviation",
     .x = "step",
     .y = "gate",
     .band = true,
     .point = gates},
    {.name = "errors",
     .title = "relative error of the factors",
     .x = "step",
     .y = "relative error",
     .log_y = true,
     .point = error},
    {.name = "norms",
     .title = "norm of the difference",
     .x = "step",
     .y = "norm",
     .log_y = true,
     .point = norm},
};
const int delta_figure_count = sizeof delta_figures / sizeof *delta_figures;
