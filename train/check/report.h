/* What `gdn check` tells: a short table with one row for each thing looked at, and which of them are
 * unfit. */
#ifndef GDN_CHECK_REPORT_H
#define GDN_CHECK_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "dist/mesh/mesh.h"

enum { CHECK_ROWS = 16, CHECK_NAME = 16, CHECK_TEXT = 1024 };

struct check_row {
    char name[CHECK_NAME], text[CHECK_TEXT];
    bool unfit;
};

/* The same on all ranks as far as `unfit` goes; the words are rank 0's. Zeroed: no rows yet. */
struct check_report {
    struct check_row row[CHECK_ROWS];
    int rows;
};

/* Adds a row that is fit. Not collective. */
void check_fit(struct check_report *report, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a row for an outcome that all ranks have agreed on: where `status` is not 0, an unfit one with the
 * recorded words, which are then forgotten; else a fit one, unless `text` is NULL. Not collective. */
void check_outcome(struct check_report *report, const char *name, int status, const char *text);

/* The table. `out` is NULL on all ranks but one. */
void check_print(const struct check_report *report, FILE *out);

/* 0 where all rows are fit, else GDN_INPUT, with all that is unfit named in the recorded words. */
int check_verdict(const struct check_report *report);

#endif
