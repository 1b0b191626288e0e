/* gdn eval --exits: what it prints and draws. */
#ifndef GDN_EVAL_EXITS_H
#define GDN_EVAL_EXITS_H

#include <jansson.h>
#include <stdio.h>

#include "train/config/config.h"
#include "train/evaluation/exits.h"

struct exits_report {
    const struct model_config *model;
    const struct exits_found *found;
    double agreement; /* wished */
};

/* A table, and the option of gdn generate that follows from it. */
void exits_print(const struct exits_report *report, FILE *out);
/* The list of interfaces.md; NULL without memory. */
json_t *exits_json(const struct exits_report *report);
/* Loss and agreement over depth as SVG. GDN_INPUT, GDN_INTERNAL. */
int exits_draw(const struct exits_report *report, const char *path);

#endif
