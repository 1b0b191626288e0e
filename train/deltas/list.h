/* What the commands of gdn deltas need of stored differences beyond file.h: chosen ones, damaged files that
 * do not end a list, and numbers of records without their factors. */
#ifndef GDN_DELTA_LIST_H
#define GDN_DELTA_LIST_H

#include <stdbool.h>

#include "train/deltas/file.h"
#include "train/deltas/ranges.h"

/* Which connections are meant. Files of others are not opened. */
struct delta_choice {
    struct ranges step, layer, distance;
    bool newest; /* of the chosen steps that have a file of a chosen layer, the last alone */
};

/* A file by its name, before it is opened. */
struct delta_found {
    char *path;
    int64_t step;
    int layer;
};

/* Finds the files of RUN/deltas, or of that folder itself, by step and layer. `choice` NULL: all. GDN_INPUT
 * where neither can be read. */
int delta_find(const char *run, const struct delta_choice *choice, struct delta_found **found, int *count);
void delta_found_free(struct delta_found *found, int count);

/* A file that cannot be read. */
struct delta_damage {
    char *path, *text; /* text: what is wrong with it, naming it */
    int64_t step;
    int layer;
};

struct delta_survey {
    struct delta_list list; /* what can be read, as far as its datasets' checksums have not been looked at */
    int files, damaged;
    struct delta_damage *damage;
};

/* Lists what is chosen. GDN_INPUT where the run has no stored differences at all, or none that is chosen: the
 * words then tell which there are. */
int delta_survey(const char *run, const struct delta_choice *choice, struct delta_survey *out);
void delta_survey_free(struct delta_survey *survey);

/* Adds a file to the damaged ones, once, with the recorded failure, which is then forgotten. GDN_INTERNAL. */
int delta_survey_damaged(struct delta_survey *survey, const struct delta_entry *entry);

/* delta_record_read, which also tells how many bytes a stored number takes. */
int delta_record_read_sized(const struct delta_entry *entry, struct delta_record *out, int *element);

/* The distances that a file has records of, in increasing order; free() them. The file says that it is of
 * this step and layer, or is damaged. GDN_INPUT. */
int delta_file_distances(const char *path, int64_t step, int layer, int **distances, int *count);

#endif
