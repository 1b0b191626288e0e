/* How long the last steps took, and how much of that went into something. Percentiles are of the nearest
 * rank: the p-th is the least of the times that at least p % of them do not exceed. */
#ifndef GDN_MONITOR_WINDOW_H
#define GDN_MONITOR_WINDOW_H

enum { WINDOW_STEPS = 100 };

struct window {
    double seconds[WINDOW_STEPS], within[WINDOW_STEPS]; /* rings */
    int count, next;
};

/* A step of so many seconds, of which `within` went into what is asked for (NAN: not known). */
void window_add(struct window *window, double seconds, double within);

/* The percentiles `percent` [count] of what is in the window; NAN while it is empty. */
void window_percentiles(const struct window *window, const double *percent, int count, double *out);

/* The part of all seconds in the window that went into it; NAN where that is not known, or the window
 * empty. */
double window_share(const struct window *window);

#endif
