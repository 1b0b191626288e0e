/* Added tokens: texts that are one token wherever they stand, found before anything is split. Those that are
 * `normalized` are looked for in the text behind the normalizers, the others in the text as it is given. */
#ifndef GDN_TOKENIZER_ADDED_H
#define GDN_TOKENIZER_ADDED_H

#include "data/tokenizer/characters.h"
#include "data/tokenizer/model.h"
#include "data/tokenizer/pre_tokenizer.h"

struct added_token {
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
};

/* Texts to be found, as a tree of their bytes: the children of a node are a list. */
struct trie_node {
    int32_t child, sibling; /* −1: none */
    int32_t token;          /* that ends here; −1: none */
    unsigned char byte;
};
struct trie {
    struct trie_node *node; /* [count]; 0 is the root */
    int32_t count, room;
    bool begins[256]; /* whether any text begins with that byte */
};

struct added {
    struct added_token *token; /* [count] */
    long count;
    struct vocabulary given;   /* as the file has them */
    struct vocabulary decoded; /* as they are read: normalized */
    struct trie plain, normalized;
};

/* Of the file's member `added_tokens`. Ids are those that the reference implementation gives them: the
 * model's, or the next that are free; GDN_INPUT where the file says others. added_close, whatever this
 * returns. */
int added_open(const struct place *place, const json_t *object, const struct model *model,
               const struct normalizers *normalizers, struct added *out);
void added_close(struct added *added);

/* The token of an id; NULL where it is none of these. */
const struct added_token *added_find(const struct added *added, int32_t id);

/* What a text consists of: tokens, and parts between them (`id` −1). */
typedef int added_take(void *input, int32_t id, struct passage part);
int added_split(const struct added *added, const struct trie *trie, struct passage text, added_take *take,
                void *input);

#endif
