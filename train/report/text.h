/* What the line of an event says, in words for a table of gdn report. */
#ifndef GDN_REPORT_TEXT_H
#define GDN_REPORT_TEXT_H

#include <jansson.h>

/* The words of an event's line, free() them; NULL without memory. */
char *report_text(const char *kind, const json_t *line);

/* How a run ended with this exit status: "stopped". */
const char *report_end_text(int status);

/* A member that is a number, else NAN; that is a string, else NULL (owned by `line`). */
double report_number(const json_t *line, const char *key);
const char *report_string(const json_t *line, const char *key);

#endif
