/* The commands of gdn deltas. Private to command/deltas.c and the files that do one each. */
#ifndef GDN_CMD_DELTAS_H
#define GDN_CMD_DELTAS_H

#include <stdbool.h>

#include "train/deltas/list.h"
#include "train/plot/plot.h"

enum { DELTAS_ALL = -1 };

struct deltas_settings {
    const char *run;
    struct delta_choice choice;
    bool json, force;
    long rank; /* DELTAS_ALL: all that is stored */
    const char *out;
    enum plot_format format;
};

/* Each returns a status; what is printed goes to standard output. Damaged files do not hide others: the
 * failure comes after these. */
int deltas_ls(const struct deltas_settings *settings);
int deltas_show(const struct deltas_settings *settings);
int deltas_reconstruct(const struct deltas_settings *settings);
int deltas_plot(const struct deltas_settings *settings);

#endif
