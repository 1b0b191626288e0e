#include "data/documents/conversation.h"

#include <string.h>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/fields.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"

static const struct conversation_template templates[] = {
    {.name = "chatml",
     .first = "",
     .before = "<|im_start|>",
     .between = "\n",
     .end = "<|im_end|>",
     .after = "\n",
     .tokens = {"<|im_start|>", "<|im_end|>"}},
    {.name = "llama3",
     .first = "<|begin_of_text|>",
     .before = "<|start_header_id|>",
     .between = "<|end_header_id|>\n\n",
     .end = "<|eot_id|>",
     .after = "",
     .trim = true,
     .tokens = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
};
enum { TEMPLATES = sizeof templates / sizeof *templates };

static const char *const roles[] = {"system", "user", "assistant"};
enum { ASSISTANT = 2, ROLES };

const struct conversation_template *conversation_template_named(const char *name) {
    for (int i = 0; i < TEMPLATES; i++)
        if (!strcmp(templates[i].name, name)) return &templates[i];
    return NULL;
}

const char *conversation_template_words(void) {
    return strchr(conversation_template_choices(), '|') + 1;
}

const char *conversation_template_choices(void) {
    static char words[(TEMPLATES + 1) * 16];
    strcpy(words, "none");
    for (int i = 0; i < TEMPLATES; i++) strcat(strcat(words, "|"), templates[i].name);
    return words;
}

const struct conversation_template *conversation_template_chosen(int choice) {
    return choice ? &templates[choice - 1] : NULL;
}

/* ------------------------------------------------------------------------------------------- messages */

struct message {
    int role;
    const char *content;
    size_t length;
};

/* Python's str.strip, which templates have by the name of trim: Unicode's white space, and four separators.
 */
static bool is_stripped(int32_t c) {
    return character_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

static void trim(struct message *m) {
    const char *end = m->content + m->length;
    for (size_t size; m->content < end && is_stripped(character_at(m->content, &size));) m->content += size;
    while (end > m->content) {
        const char *last = character_before(m->content, end);
        size_t size;
        if (!is_stripped(character_at(last, &size))) break;
        end = last;
    }
    m->length = (size_t)(end - m->content);
}

/* Message i, from 1 on, for people. */
static int take_message(const json_t *value, size_t i, struct message *out) {
    char words[QUOTED];
    const json_t *role = json_object_get(value, "role"), *content = json_object_get(value, "content");
    const char *key;
    json_t *member;
    if (!json_is_string(role) || !json_is_string(content))
        return gdn_fail(GDN_INPUT, "message %zu is no object with texts under 'role' and 'content'", i);
    json_object_foreach((json_t *)value, key, member) {
        if (strcmp(key, "role") && strcmp(key, "content"))
            return gdn_fail(GDN_INPUT, "message %zu has '%s'; 'role' and 'content' alone are expected", i,
                            quoted(key, words));
    }
    for (out->role = 0; out->role < ROLES; out->role++)
        if (!strcmp(roles[out->role], json_string_value(role))) break;
    if (out->role == ROLES)
        return gdn_fail(GDN_INPUT, "message %zu has the role '%s'; system, user or assistant is expected", i,
                        quoted(json_string_value(role), words));
    out->content = json_string_value(content);
    out->length = json_string_length(content);
    return GDN_OK;
}

/* --------------------------------------------------------------------------------------------- tokens */

static int add(struct text *text, const char *words) {
    return text_add(text, words, strlen(words));
}

/* A message's text; *header is where its content begins. */
static int render(const struct conversation_template *t, const struct message *m, bool first,
                  struct text *out, size_t *header) {
    out->length = 0;
    if (first) TRY(add(out, t->first));
    TRY(add(out, t->before));
    TRY(add(out, roles[m->role]));
    TRY(add(out, t->between));
    *header = out->length;
    TRY(text_add(out, m->content, m->length));
    TRY(add(out, t->end));
    return add(out, t->after);
}

/* Marks tokens of one message, from the `from`th on, that do not count: all but those behind what is the same
 * without a content, up to the last `end`. */
static void mark(struct ids *ids, long from, const struct ids *header, bool assistant, int32_t end) {
    long first = from, last = ids->count;
    while (first < ids->count && first - from < header->count && ids->id[first] == header->id[first - from])
        first++;
    while (last > from && ids->id[last - 1] != end) last--;
    for (long i = from; i < ids->count; i++)
        if (!assistant || i < first || i >= last) ids->id[i] |= MARK_UNCOUNTED;
}

static int encode_message(const struct conversation_template *t, const struct tokenizer *tokenizer,
                          struct encoder *encoder, const struct message *m, bool first, struct text *text,
                          struct ids *out) {
    struct ids header = {0};
    const long from = out->count;
    size_t head;
    TRY(render(t, m, first, text, &head));
    TRY(encoder_encode(encoder, text->bytes, text->length, false, out));
    int status = encoder_encode(encoder, text->bytes, head, false, &header);
    if (!status)
        mark(out, from, &header, m->role == ASSISTANT, tokenizer_id(tokenizer, t->end, strlen(t->end)));
    ids_free(&header);
    return status;
}

int conversation_encode(const struct conversation_template *template, const struct tokenizer *tokenizer,
                        struct encoder *encoder, const json_t *messages, struct ids *out, long *bytes) {
    struct text text = {0};
    int status = json_is_array(messages) && json_array_size(messages)
                     ? GDN_OK
                     : gdn_fail(GDN_INPUT, "there is no list of messages");
    *bytes = 0;
    for (size_t i = 0; i < json_array_size(messages) && !status; i++) {
        struct message message = {0};
        status = take_message(json_array_get(messages, i), i + 1, &message);
        if (status) break;
        *bytes += (long)message.length;
        if (template->trim) trim(&message);
        status = encode_message(template, tokenizer, encoder, &message, i == 0, &text, out);
    }
    text_free(&text);
    return status;
}

/* Messages are encoded one by one, which is the text of all where a message's first token takes nothing of
 * what is before it. */
static int verify_apart(const struct conversation_template *t, const struct tokenizer *tokenizer,
                        struct encoder *encoder) {
    struct text one = {0}, two = {0};
    struct ids apart = {0}, whole = {0};
    const struct message message = {.role = ASSISTANT, .content = "a \n", .length = 3};
    size_t header;
    int status = render(t, &message, false, &one, &header);
    for (int i = 0; i < 2 && !status; i++) {
        status = text_add(&two, one.bytes, one.length);
        if (!status) status = encoder_encode(encoder, one.bytes, one.length, false, &apart);
    }
    if (!status) status = encoder_encode(encoder, two.bytes, two.length, false, &whole);
    if (!status && (apart.count != whole.count ||
                    memcmp(apart.id, whole.id, (size_t)apart.count * sizeof *apart.id) != 0))
        status = gdn_fail(GDN_INPUT,
                          "%s: its token '%s' takes white space before it (lstrip), or is normalized with "
                          "what is before it (normalized), which the template %s cannot have",
                          tokenizer_path(tokenizer), t->before, t->name);
    text_free(&one);
    text_free(&two);
    ids_free(&apart);
    ids_free(&whole);
    return status;
}

int conversation_verify(const struct conversation_template *template, const struct tokenizer *tokenizer,
                        struct encoder *encoder) {
    for (size_t i = 0; i < sizeof template->tokens / sizeof *template->tokens && template->tokens[i]; i++) {
        const char *token = template->tokens[i];
        struct ids ids = {0};
        int status = encoder_encode(encoder, token, strlen(token), false, &ids);
        bool whole = ids.count == 1 && ids.id[0] == tokenizer_id(tokenizer, token, strlen(token));
        ids_free(&ids);
        TRY(status);
        if (!whole)
            return gdn_fail(GDN_INPUT, "%s has no special token '%s', which the template %s needs",
                            tokenizer_path(tokenizer), token, template->name);
    }
    return verify_apart(template, tokenizer, encoder);
}
