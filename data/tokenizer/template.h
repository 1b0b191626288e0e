/* Templates: which special tokens stand around a text (post-processors). */
#ifndef GDN_TOKENIZER_TEMPLATE_H
#define GDN_TOKENIZER_TEMPLATE_H

#include "data/tokenizer/fields.h"
#include "data/tokenizer/text.h"

/* Zeros are none of them. */
struct template {
    struct ids before, after;
    bool given;
};

/* Of the file's member `post_processor`. template_close, whatever this returns. */
int template_open(const struct place *place, const json_t *object, struct template *out);
void template_close(struct template *template);

#endif
