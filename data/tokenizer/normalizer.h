/* Normalizers: what becomes of a text before it is split. Each is a row of a table, by its `type` in the
 * file; a tokenizer has a list of them, applied in order. */
#ifndef GDN_TOKENIZER_NORMALIZER_H
#define GDN_TOKENIZER_NORMALIZER_H

#include "data/tokenizer/pattern.h"
#include "data/tokenizer/text.h"

/* A text on its way. `head` of its first bytes stand for the first character of the text that was given:
 * `first` of Metaspace asks for that. */
struct passage {
    const char *text;
    size_t length, head;
};

struct normalizer {
    const struct normalizer_kind *kind;
    struct pattern pattern; /* Replace */
    struct text content;    /* Replace, Prepend */
};

struct normalizer_kind {
    const char *type;  /* in the file */
    const char *known; /* members that its object may have */
    int options;       /* of utf8proc, for Unicode's forms */
    /* Takes the members of its own; NULL where there are none. */
    int (*open)(const struct place *, const json_t *, struct normalizer *);
    /* Appends what becomes of `in` to `out` and sets out_head. */
    int (*run)(const struct normalizer *, OnigRegion *, struct passage in, struct text *out,
               size_t *out_head);
};

struct normalizers {
    struct normalizer *row; /* [count] */
    int count;
};

/* Of the file's member `normalizer`. normalizers_close, whatever this returns. */
int normalizers_open(const struct place *place, const json_t *object, struct normalizers *out);
void normalizers_close(struct normalizers *normalizers);

/* All of them on `in`; *out lies in `in` or in one of two buffers. */
int normalizers_run(const struct normalizers *normalizers, OnigRegion *region, struct passage in,
                    struct text buffer[2], struct passage *out);

/* Rows' runs that stand in a file of their own: unicode_forms.c. */
int unicode_form_run(const struct normalizer *, OnigRegion *, struct passage in, struct text *out,
                     size_t *out_head);
int lowercase_run(const struct normalizer *, OnigRegion *, struct passage in, struct text *out,
                  size_t *out_head);

#endif
