/* Pre-tokenizers: how a text is cut into words, within which tokens are merged. Each is a row of a table, by
 * its `type` in the file. A tokenizer has a list of steps: what one step cuts it hands on to the next, piece
 * by piece, and the last one to the model, so that no step needs room for more than one piece. */
#ifndef GDN_TOKENIZER_PRE_TOKENIZER_H
#define GDN_TOKENIZER_PRE_TOKENIZER_H

#include "data/tokenizer/normalizer.h"

/* What becomes of the matches of a pattern, each of which is a piece as is what lies between two. */
enum behavior { ISOLATED, REMOVED, CONTIGUOUS, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT };

struct step {
    const struct pre_tokenizer_kind *kind;
    struct pattern pattern; /* Split; ByteLevel's own expression */
    enum behavior behavior;
    bool invert;       /* Split: the pattern is of what is kept apart, not of what parts it */
    bool prefix_space; /* ByteLevel */
    bool use_regex;
    char replacement[4]; /* Metaspace; [replacement_length] */
    size_t replacement_length;
    enum { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS } prepend;
    bool split;
};

/* A walk through all steps by one thread. */
struct walk {
    const struct step *step; /* [count] */
    int count;
    struct text *buffer; /* [count] what a step writes in place of its piece */
    OnigRegion *region;  /* what a search found last */
    int (*take)(void *input, const char *word, size_t length); /* of the pieces of the last step */
    void *input;
};

struct pre_tokenizer_kind {
    const char *type;
    const char *known;
    bool (*is_match)(int32_t); /* of rows that split by characters */
    int (*open)(const struct place *, const json_t *, struct step *);
    /* Hands on the pieces of `piece` by walk_on. */
    int (*run)(const struct walk *, int i, struct passage piece);
};

/* Of the file's member `pre_tokenizer`: *steps [*count]. steps_close, whatever this returns. */
int steps_open(const struct place *place, const json_t *object, struct step **steps, int *count);
void steps_close(struct step *steps, int count);

/* Takes a piece through step i and all that follow it; empty pieces end here. */
int walk_step(const struct walk *walk, int i, struct passage piece);

/* Bytes [start, end) of a passage. */
struct passage passage_part(struct passage passage, size_t start, size_t end);

/* A piece in the making, which the next may yet belong to. */
struct splitter {
    const struct walk *walk;
    int step; /* that pieces are handed on to */
    enum behavior behavior;
    struct passage all;
    size_t start, end;
    bool held, held_match, last_match;
};

/* The next part [start, end) of splitter->all, a match or not; splitter_end after the last. */
int splitter_add(struct splitter *splitter, size_t start, size_t end, bool match);
int splitter_end(struct splitter *splitter);

/* Parts by the matches of a pattern. */
int splitter_search(struct splitter *splitter, const struct pattern *pattern, OnigRegion *region,
                    bool invert);

/* Rows with a file of their own. */
int byte_level_open(const struct place *, const json_t *, struct step *);
int byte_level_run(const struct walk *, int i, struct passage piece);
int metaspace_open(const struct place *, const json_t *, struct step *);
int metaspace_run(const struct walk *, int i, struct passage piece);

/* Checks what a decoder or post-processor of that name says of itself, as the pre-tokenizer does. */
extern const char byte_level_known[], metaspace_known[];

#endif
