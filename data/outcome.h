/* A folder of files that appears complete or not at all: it is filled under a hidden name beside its own and
 * renamed. */
#ifndef GDN_OUTCOME_H
#define GDN_OUTCOME_H

struct outcome {
    char *path;    /* the name it will have */
    char *partial; /* the name it has until then */
};

/* Makes the partial folder, empty. GDN_INPUT where it cannot be made, `path` is there and not empty, or is
 * `.`. Whatever happens then, outcome_close must follow. */
int outcome_open(const char *path, struct outcome *out);

/* Writes a small text file into it. GDN_INPUT. */
int outcome_write(const struct outcome *outcome, const char *name, const char *text);

/* Gives it its own name. GDN_INPUT. */
int outcome_finish(struct outcome *outcome);

/* Frees everything and removes what was not finished. */
void outcome_close(struct outcome *outcome);

#endif
