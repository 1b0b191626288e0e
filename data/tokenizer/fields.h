/* Members of JSON objects in a tokenizer's file, with failures that say where in the file they are. A member
 * that nobody asks for is refused: what is not understood would otherwise be left out silently. */
#ifndef GDN_TOKENIZER_FIELDS_H
#define GDN_TOKENIZER_FIELDS_H

#include <jansson.h>
#include <stdbool.h>

/* Where one is: "tokenizer.json: normalizer.normalizers[2]". */
struct place {
    const char *path;
    char where[160];
};

/* The place of a member, or of an element (`index` ≥ 0) of one. */
struct place place_inside(const struct place *place, const char *member, long index);

/* Records `GDN_INPUT`: the place, then the words. */
int place_fail(const struct place *place, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { QUOTED = 100 };
/* The text as messages may have it, on one line and not long, in `out`, which is returned. */
const char *quoted(const char *text, char out[QUOTED]);

/* GDN_INPUT where `object` is no object or has a member that the words `known`, parted by blanks, lack. */
int fields_known(const struct place *place, const json_t *object, const char *known);

/* Each fails with GDN_INPUT where the member is of another type, or is not there. */
int field_string(const struct place *place, const json_t *object, const char *name, const char **out,
                 size_t *length);
int field_integer(const struct place *place, const json_t *object, const char *name, long min, long max,
                  long *out);
int field_array(const struct place *place, const json_t *object, const char *name, const json_t **out);
/* One character, as a number. */
int field_character(const struct place *place, const json_t *object, const char *name, int32_t *out);

/* `missing` is what a member that is not there means: 0 or 1, or MUST where it has to be there. */
enum { MUST = -1 };
int field_bool(const struct place *place, const json_t *object, const char *name, int missing, bool *out);

/* A row of a table, by the member `type` of an object. `rows` is an array of `count` rows of `size` bytes
 * each of which begins with its name. The message of GDN_INPUT names all of them. */
int field_row(const struct place *place, const json_t *object, const void *rows, size_t size, size_t count,
              const void **out);

/* Calls `take` for `object`, or, where its type is "Sequence", for each element of its array `list`, however
 * deep. Null is no call. */
int fields_each(const struct place *place, const json_t *object, const char *list,
                int (*take)(const struct place *, const json_t *, void *), void *input);

#endif
