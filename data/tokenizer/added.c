#include "data/tokenizer/added.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

static int32_t new_node(struct trie *trie, unsigned char byte) {
    if (trie->count == trie->room) {
        int32_t room = 2 * trie->room + 64;
        struct trie_node *node = realloc(trie->node, (size_t)room * sizeof *node);
        if (!node) return -1;
        trie->node = node;
        trie->room = room;
    }
    trie->node[trie->count] = (struct trie_node){-1, -1, -1, byte};
    return trie->count++;
}

static int32_t find_child(const struct trie *trie, int32_t node, unsigned char byte) {
    int32_t child = trie->node[node].child;
    while (child >= 0 && trie->node[child].byte != byte) child = trie->node[child].sibling;
    return child;
}

/* *taken: another token has that text. */
static int trie_add(struct trie *trie, const char *text, size_t length, int32_t token, bool *taken) {
    int32_t at = 0;
    if (!trie->count && new_node(trie, 0) < 0) return gdn_fail(GDN_INTERNAL, "no memory for added tokens");
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        int32_t next = find_child(trie, at, byte);
        if (next < 0) {
            next = new_node(trie, byte);
            if (next < 0) return gdn_fail(GDN_INTERNAL, "no memory for added tokens");
            trie->node[next].sibling = trie->node[at].child;
            trie->node[at].child = next;
        }
        at = next;
    }
    *taken = trie->node[at].token >= 0;
    trie->node[at].token = token;
    if (length) trie->begins[(unsigned char)text[0]] = true;
    return GDN_OK;
}

/* The longest text of the trie that begins at `at`: its length, or 0. */
static size_t trie_match(const struct trie *trie, const char *at, const char *end, int32_t *token) {
    size_t longest = 0;
    int32_t node = 0;
    for (const char *to = at; to < end && (node = find_child(trie, node, (unsigned char)*to)) >= 0;) {
        to++;
        if (trie->node[node].token < 0) continue;
        longest = (size_t)(to - at);
        *token = trie->node[node].token;
    }
    return longest;
}

static const char *blanks_before(const char *start, const char *at) {
    size_t size;
    while (at > start && character_is_space(character_at(character_before(start, at), &size)))
        at = character_before(start, at);
    return at;
}

static const char *blanks_behind(const char *at, const char *end) {
    for (size_t size; at < end && character_is_space(character_at(at, &size));) at += size;
    return at;
}

/* Whether [at, to) stands by itself in [start, end). */
static bool is_single(const char *start, const char *end, const char *at, const char *to) {
    size_t size;
    return !(at > start && character_is_word(character_at(character_before(start, at), &size))) &&
           !(to < end && character_is_word(character_at(to, &size)));
}

int added_split(const struct added *added, const struct trie *trie, struct passage text, added_take *take,
                void *input) {
    const char *start = text.text, *end = start + text.length, *done = start;
    for (const char *at = start; trie->count && at < end;) {
        int32_t number;
        size_t length = trie->begins[(unsigned char)*at] ? trie_match(trie, at, end, &number) : 0;
        if (!length) {
            at++;
            continue;
        }
        const struct added_token *token = &added->token[number];
        const char *from = at, *to = at + length;
        at = to; /* the next is looked for behind the match itself, whatever it takes of blanks */
        if (token->single_word && !is_single(start, end, from, to)) continue;
        if (token->lstrip) from = blanks_before(start, from);
        if (token->lstrip && from < done) from = done;
        if (token->rstrip) to = blanks_behind(to, end);
        if (done < from)
            TRY(take(input, -1, passage_part(text, (size_t)(done - start), (size_t)(from - start))));
        if (from < to)
            TRY(take(input, token->id, passage_part(text, (size_t)(from - start), (size_t)(to - start))));
        done = to;
    }
    if (done == end) return GDN_OK;
    return take(input, -1, passage_part(text, (size_t)(done - start), text.length));
}

static int read_flags(const struct place *place, const json_t *object, struct added_token *token) {
    TRY(fields_known(place, object, "id content single_word lstrip rstrip normalized special"));
    TRY(field_bool(place, object, "single_word", MUST, &token->single_word));
    TRY(field_bool(place, object, "lstrip", MUST, &token->lstrip));
    TRY(field_bool(place, object, "rstrip", MUST, &token->rstrip));
    TRY(field_bool(place, object, "normalized", MUST, &token->normalized));
    return field_bool(place, object, "special", MUST, &token->special);
}

/* What is looked for, and what the token is read as. */
static int spell(struct added *added, const struct normalizers *normalizers, OnigRegion *region,
                 const char *content, size_t length, int32_t number, bool *taken) {
    const struct added_token *token = &added->token[number];
    struct text buffer[2] = {{0}};
    struct passage text = {content, length, 0};
    int status = token->normalized ? normalizers_run(normalizers, region, text, buffer, &text) : GDN_OK;
    if (!status) status = vocabulary_add(&added->decoded, text.text, text.length, token->id);
    *taken = false;
    if (!status && text.length)
        status = trie_add(token->normalized ? &added->normalized : &added->plain, text.text, text.length,
                          number, taken);
    text_free(&buffer[0]);
    text_free(&buffer[1]);
    return status;
}

static int read_token(const struct place *place, const json_t *object, const struct model *model,
                      const struct normalizers *normalizers, OnigRegion *region, struct added *added) {
    struct added_token *token = &added->token[added->count];
    const char *content;
    char words[QUOTED];
    size_t length;
    long id;
    bool taken;
    TRY(read_flags(place, object, token));
    TRY(field_string(place, object, "content", &content, &length));
    TRY(field_integer(place, object, "id", 0, MAX_ID, &id));
    if (!length) return place_fail(place, "'content' is empty");
    if (vocabulary_find(&added->given, content, length) >= 0)
        return place_fail(place, "'%s' is there twice", quoted(content, words));
    token->id = vocabulary_find(&model->vocabulary, content, length);
    if (token->id < 0) { /* behind the model's, and behind those that were added */
        long next = model->vocabulary.count;
        if (added->given.end > next) next = added->given.end;
        token->id = (int32_t)(next <= MAX_ID ? next : MAX_ID);
        size_t unused;
        if (vocabulary_name(&model->vocabulary, token->id, &unused))
            return place_fail(place, "'%s' gets id %d, which a token of the model has",
                              quoted(content, words), token->id);
    }
    if (token->id != id)
        return place_fail(place, "'%s' has id %ld, where the vocabulary and the tokens before it make it %d",
                          quoted(content, words), id, token->id);
    TRY(vocabulary_add(&added->given, content, length, token->id));
    TRY(spell(added, normalizers, region, content, length, (int32_t)added->count, &taken));
    if (taken)
        return place_fail(place, "'%s' is the same as another one, normalized", quoted(content, words));
    added->count++;
    return GDN_OK;
}

int added_open(const struct place *place, const json_t *object, const struct model *model,
               const struct normalizers *normalizers, struct added *out) {
    *out = (struct added){0};
    const json_t *tokens = json_object_get(object, "added_tokens");
    if (!tokens) return GDN_OK;
    TRY(field_array(place, object, "added_tokens", &tokens));
    size_t count = json_array_size(tokens);
    OnigRegion *region = onig_region_new();
    out->token = calloc(count + 1, sizeof *out->token);
    int status =
        out->token && region ? GDN_OK : gdn_fail(GDN_INTERNAL, "no memory for %zu added tokens", count);
    for (size_t i = 0; i < count && !status; i++) {
        struct place inner = place_inside(place, "added_tokens", (long)i);
        status = read_token(&inner, json_array_get(tokens, i), model, normalizers, region, out);
    }
    if (region) onig_region_free(region, 1);
    return status;
}

void added_close(struct added *added) {
    free(added->token);
    free(added->plain.node);
    free(added->normalized.node);
    vocabulary_free(&added->given);
    vocabulary_free(&added->decoded);
    *added = (struct added){0};
}

const struct added_token *added_find(const struct added *added, int32_t id) {
    size_t length;
    if (!vocabulary_name(&added->given, id, &length)) return NULL;
    for (long i = 0; i < added->count; i++)
        if (added->token[i].id == id) return &added->token[i];
    return NULL;
}
