#include "train/health/slow.h"

#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { TIMES = 2 }; /* gatherings in a row */

int slow_create(int ranks, const int *group, double factor, struct slow *out) {
    size_t n = (size_t)ranks;
    *out = (struct slow){.ranks = ranks, .factor = factor};
    out->group = malloc(n * sizeof *out->group);
    out->median = calloc(n, sizeof *out->median);
    out->sorted = calloc(n, sizeof *out->sorted);
    out->slow_times = calloc(n, sizeof *out->slow_times);
    if (!out->group || !out->median || !out->sorted || !out->slow_times)
        return gdn_fail(GDN_INTERNAL, "out of memory for the times of %d ranks", ranks);
    memcpy(out->group, group, n * sizeof *group);
    return 0;
}

void slow_free(struct slow *slow) {
    free(slow->group);
    free(slow->median);
    free(slow->sorted);
    free(slow->slow_times);
    *slow = (struct slow){0};
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower median of a rank's group. */
static double median_of(struct slow *s, const double *seconds, int rank) {
    int count = 0;
    for (int r = 0; r < s->ranks; r++)
        if (s->group[r] == s->group[rank]) s->sorted[count++] = seconds[r];
    qsort(s->sorted, (size_t)count, sizeof *s->sorted, by_size);
    return s->sorted[(count - 1) / 2];
}

/* Ranks of a group usually follow each other, which then have one median. */
static void find_medians(struct slow *s, const double *seconds) {
    for (int r = 0; r < s->ranks; r++)
        s->median[r] = r && s->group[r] == s->group[r - 1] ? s->median[r - 1] : median_of(s, seconds, r);
}

int slow_judge(struct slow *slow, const double *seconds, int *found) {
    int count = 0;
    find_medians(slow, seconds);
    for (int r = 0; r < slow->ranks; r++) {
        double median = slow->median[r];
        bool is_slow = seconds[r] > slow->factor * median && seconds[r] > median + SLOW_MIN;
        int *times = &slow->slow_times[r];
        *times = !is_slow ? 0 : *times <= TIMES ? *times + 1 : *times;
        if (*times == TIMES) found[count++] = r;
    }
    return count;
}
