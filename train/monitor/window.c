#include "train/monitor/window.h"

#include <math.h>

void window_add(struct window *window, double seconds, double within) {
    window->seconds[window->next] = seconds;
    window->within[window->next] = within;
    window->next = (window->next + 1) % WINDOW_STEPS;
    if (window->count < WINDOW_STEPS) window->count++;
}

/* By insertion: a hundred numbers, and qsort may allocate. */
static void sort(double *x, int count) {
    for (int i = 1; i < count; i++) {
        double moved = x[i];
        int to = i;
        for (; to > 0 && x[to - 1] > moved; to--) x[to] = x[to - 1];
        x[to] = moved;
    }
}

void window_percentiles(const struct window *window, const double *percent, int count, double *out) {
    double sorted[WINDOW_STEPS];
    for (int i = 0; i < window->count; i++) sorted[i] = window->seconds[i];
    sort(sorted, window->count);
    for (int i = 0; i < count; i++) {
        int at = (int)ceil(percent[i] * window->count / 100) - 1;
        out[i] = window->count ? sorted[at < 0 ? 0 : at] : NAN;
    }
}

double window_share(const struct window *window) {
    double within = 0, all = 0;
    for (int i = 0; i < window->count; i++) {
        within += window->within[i];
        all += window->seconds[i];
    }
    return within / all;
}
