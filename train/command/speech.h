/* What lies between text and tokens for a command that writes text: a prompt becomes tokens, and tokens text.
 */
#ifndef GDN_SPEECH_H
#define GDN_SPEECH_H

#include <jansson.h>

#include "train/command/saved_model.h"
#include "train/command/utf8_stream.h"
#include "train/command/writing.h"

struct speech {
    struct run_tokenizer known;
    struct tokenizer *words; /* NULL: not known */
    struct utf8_stream stream;
};

/* Opens what the model's checkpoint carries, or its configuration names. `out` is zeros before. GDN_INPUT
 * where it cannot be read. speech_close, whatever this returns. */
int speech_open(const struct saved_model *saved, struct speech *out);
void speech_close(struct speech *speech);

/* Whether tokens are known to be text. */
static inline bool speech_is_text(const struct speech *speech) {
    return speech->words;
}

/* Tokens that a prompt has at most. */
long speech_prompt_room(const char *prompt);

/* The prompt, or with `ids` the numbers that it lists, as tokens of `text`, which is empty and has room for
 * speech_prompt_room; of an empty one the token that begins a document. GDN_INPUT where it is none, or
 * outside the model's vocabulary. */
int speech_read_prompt(const char *prompt, bool ids, const struct saved_model *saved,
                       const struct speech *speech, struct sequence *text);

/* Tokens as the text they are; what separates documents is none. NULL without memory. */
json_t *speech_json(const struct speech *speech, const int32_t *token, long count);

#endif
