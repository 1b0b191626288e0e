/* What gdn prune prints. */
#ifndef GDN_PRUNE_PRINT_H
#define GDN_PRUNE_PRINT_H

#include <stdio.h>

#include "train/prune/prune.h"

struct prune_report {
    const struct prune *prune;
    const char *checkpoint; /* its path */
    long step;
    long sequences; /* that losses are of */
    double tokens;  /* of these, predicted and counted */
    enum prune_by by;
    double keep;        /* as asked; NAN: not */
    const char *output; /* folder that was written; NULL: none */
};

/* As text, or as one line of JSON on standard output. GDN_INTERNAL without memory, or where it cannot be
 * printed. */
int prune_print(const struct prune_report *report, FILE *out);
int prune_print_json(const struct prune_report *report);

#endif
