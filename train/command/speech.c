#include "train/command/speech.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/format.h"
#include "kernels/base/status.h"
#include "train/command/json_line.h"

static int read_ids(const char *prompt, int32_t *token, long *count) {
    for (char *end; *(prompt += strspn(prompt, " ,\t\n")); prompt = end) {
        errno = 0;
        long id = strtol(prompt, &end, 10);
        if (end == prompt || errno || id < 0 || id > INT32_MAX)
            return gdn_fail(GDN_INPUT, "--prompt '%s': token ids separated by blanks are expected with --ids",
                            prompt);
        token[(*count)++] = (int32_t)id;
    }
    return GDN_OK;
}

int speech_open(const struct saved_model *saved, struct speech *out) {
    const struct mesh alone = mesh_alone();
    TRY(run_tokenizer_open(&saved->config, &alone, &saved->tokenizer, saved->path, &out->known));
    return out->known.carried.name ? carried_open(&out->known.carried, &out->words) : GDN_OK;
}

void speech_close(struct speech *speech) {
    tokenizer_close(speech->words);
    run_tokenizer_free(&speech->known);
}

/* Starts from the end of a document before, where its token is known: of a tokenizer that has one, and in
 * token files of the vocabulary that `gdn data write` makes of bytes. */
static int start_document(const struct saved_model *saved, const struct speech *speech,
                          struct sequence *text) {
    const struct config *c = &saved->config;
    if (speech_is_text(speech) && speech->known.bytes.separator >= 0) {
        text->token[text->count++] = speech->known.bytes.separator;
        return GDN_OK;
    }
    if (speech_is_text(speech))
        return gdn_fail(GDN_INPUT,
                        "--prompt is empty: no token of %s is known to stand between documents; "
                        "give a beginning",
                        speech->known.carried.name);
    if (c->model.vocab_size != TEXT_SEPARATOR + 1)
        return gdn_fail(GDN_INPUT,
                        "--prompt is empty: with a vocabulary of %d tokens that are not known to be bytes, "
                        "none is known to begin a document; give one or more ids",
                        c->model.vocab_size);
    text->token[text->count++] = TEXT_SEPARATOR;
    return GDN_OK;
}

/* As training reads a document's beginning. */
static int read_words(const char *prompt, const struct speech *speech, struct sequence *text, long room) {
    struct encoder *encoder;
    struct ids ids = {0};
    TRY(encoder_create(speech->words, &encoder));
    int status = encoder_encode(encoder, prompt, strlen(prompt), false, &ids);
    encoder_free(encoder);
    if (!status && ids.count > room) /* a tokenizer may lengthen a text */
        status = gdn_fail(GDN_INPUT, "--prompt: it is %ld tokens, and at most %ld are expected of %zu bytes",
                          ids.count, room, strlen(prompt));
    for (long i = 0; i < ids.count && !status; i++) text->token[text->count++] = ids.id[i];
    ids_free(&ids);
    return status;
}

long speech_prompt_room(const char *prompt) {
    return 4 * (long)strlen(prompt) + 16; /* each of its characters may become several */
}

int speech_read_prompt(const char *prompt, bool ids, const struct saved_model *saved,
                       const struct speech *speech, struct sequence *text) {
    int vocab = saved->config.model.vocab_size;
    if (ids)
        TRY(read_ids(prompt, text->token, &text->count));
    else
        TRY(read_words(prompt, speech, text, speech_prompt_room(prompt)));
    if (!text->count) TRY(start_document(saved, speech, text));
    for (long i = 0; i < text->count; i++)
        if (text->token[i] >= vocab)
            return gdn_fail(GDN_INPUT,
                            "--prompt: token %d at position %ld is outside the model's vocabulary of %d",
                            text->token[i], i, vocab);
    text->given = text->count;
    return GDN_OK;
}

json_t *speech_json(const struct speech *speech, const int32_t *token, long count) {
    struct text bytes = {0};
    int status = text_reserve(&bytes, 1);
    for (long i = 0; i < count && !status; i++) {
        size_t length;
        const char *piece = token_bytes_at(&speech->known.bytes, token[i], &length);
        status = text_add(&bytes, piece, length);
    }
    json_t *string = status ? NULL : json_bytes(bytes.bytes, bytes.length);
    text_free(&bytes);
    return string;
}
