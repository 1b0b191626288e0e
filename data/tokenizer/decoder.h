/* Decoders: what becomes of tokens' names on their way back to text. Each is a row of a table, by its `type`
 * in the file; a tokenizer has a list of them, applied in order. Without any, names are joined by blanks. */
#ifndef GDN_TOKENIZER_DECODER_H
#define GDN_TOKENIZER_DECODER_H

#include "data/tokenizer/pattern.h"
#include "data/tokenizer/text.h"

struct decoder {
    const struct decoder_kind *kind;
    struct pattern pattern; /* Replace */
    struct text content;    /* Replace */
    int32_t character;      /* Strip, Metaspace */
    long start, stop;       /* Strip */
    bool first;             /* Metaspace: the first token loses its mark */
};

struct decoding {
    OnigRegion *region;
    struct text *searched; /* to be written to */
    bool raw; /* bytes that are no UTF-8 stay what they are; else they are U+FFFD */
};

struct decoder_kind {
    const char *type;
    const char *known;
    int (*open)(const struct place *, const json_t *, struct decoder *);
    /* Appends what becomes of `in` to `out`, which is empty. */
    int (*run)(const struct decoder *, const struct decoding *, const struct texts *in, struct texts *out);
};

struct decoders {
    struct decoder *row; /* [count] */
    int count;
};

/* Of the file's member `decoder`. decoders_close, whatever this returns. */
int decoders_open(const struct place *place, const json_t *object, struct decoders *out);
void decoders_close(struct decoders *decoders);

/* Appends the text of tokens' names to `out`; changes `names`. */
int decoders_run(const struct decoders *decoders, bool raw, struct texts *names, struct text *out);

#endif
