/* A thread's part of the model: a word becomes symbols, a heap says which two neighbours are merged next, and
 * words that were met before are looked up. */
#include <string.h>
#include <xxhash.h>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/model.h"

enum {
    CACHED_WORDS = 1 << 16,
    CACHED_BYTES = 1 << 24, /* of words and tokens; all are forgotten when there are more */
    LONGEST_CACHED = 256,   /* bytes */
    LONG_WORD = 64,         /* bytes from which on a word is cut where no merge comes */
};

struct symbol {
    int32_t id; /* −1: merged into the one before */
    int32_t previous, next;
};

/* A merge that may be done: of the symbol at `at` with its next. */
struct candidate {
    int32_t rank, at, id;
};

/* A word that was met: its bytes lie in `memory`, behind the tokens that it became. */
struct cached {
    uint64_t hash; /* 0: none */
    size_t at;     /* in memory */
    int32_t length, count;
};

struct merger {
    const struct model *model;
    struct symbol *symbol;  /* [room] */
    struct candidate *heap; /* [heap_room], [candidates] in use */
    size_t room, heap_room, candidates;
    struct cached *cached; /* [CACHED_WORDS] */
    struct text memory;
};

int merger_create(const struct model *model, struct merger **out) {
    struct merger *m = *out = calloc(1, sizeof *m);
    if (m) m->cached = calloc(CACHED_WORDS, sizeof *m->cached);
    if (!m || !m->cached) return gdn_fail(GDN_INTERNAL, "no memory for a tokenizer");
    m->model = model;
    return GDN_OK;
}

void merger_free(struct merger *m) {
    if (!m) return;
    free(m->symbol);
    free(m->heap);
    free(m->cached);
    text_free(&m->memory);
    free(m);
}

/* The lowest rank first, and of equals the leftmost. */
static bool before(const struct candidate *a, const struct candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(struct merger *m, struct candidate candidate) {
    size_t i = m->candidates++;
    for (size_t up; i && before(&candidate, &m->heap[up = (i - 1) / 2]); i = up) m->heap[i] = m->heap[up];
    m->heap[i] = candidate;
}

static struct candidate pop(struct merger *m) {
    struct candidate first = m->heap[0], last = m->heap[--m->candidates];
    size_t i = 0, n = m->candidates;
    for (size_t down; (down = 2 * i + 1) < n; i = down) {
        if (down + 1 < n && before(&m->heap[down + 1], &m->heap[down])) down++;
        if (!before(&m->heap[down], &last)) break;
        m->heap[i] = m->heap[down];
    }
    m->heap[i] = last;
    return first;
}

static void push_pair(struct merger *m, int32_t at) {
    int32_t next = at < 0 ? -1 : m->symbol[at].next;
    const struct pair *pair =
        next < 0 ? NULL : pairs_find(&m->model->merges, m->symbol[at].id, m->symbol[next].id);
    if (pair) push(m, (struct candidate){pair->rank, at, pair->id});
}

/* Merges `count` symbols as far as they go. Each merge adds two candidates and uses up one, so that there are
 * never more than two for a symbol. */
static void merge(struct merger *m, int32_t count) {
    m->candidates = 0;
    for (int32_t i = 0; i < count; i++)
        m->symbol[i].previous = i - 1, m->symbol[i].next = i + 1 < count ? i + 1 : -1;
    for (int32_t i = 0; i < count; i++) push_pair(m, i);
    while (m->candidates) {
        struct candidate top = pop(m);
        struct symbol *left = &m->symbol[top.at];
        if (left->id < 0 || left->next < 0) continue;
        struct symbol *right = &m->symbol[left->next];
        const struct pair *pair = pairs_find(&m->model->merges, left->id, right->id);
        if (!pair || pair->id != top.id) continue; /* one of the two has been merged since */
        left->id = top.id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) m->symbol[left->next].previous = top.at;
        push_pair(m, left->previous);
        push_pair(m, top.at);
    }
}

static int reserve(struct merger *m, size_t symbols) {
    if (symbols > INT32_MAX / 2)
        return gdn_fail(GDN_INPUT, "a word of %zu characters is too long for the tokenizer", symbols);
    if (symbols <= m->room) return GDN_OK;
    size_t room = symbols + symbols / 2;
    struct symbol *symbol = realloc(m->symbol, room * sizeof *symbol);
    if (symbol) m->symbol = symbol;
    struct candidate *heap = realloc(m->heap, 2 * room * sizeof *heap);
    if (heap) m->heap = heap;
    if (!symbol || !heap) return gdn_fail(GDN_INTERNAL, "no memory for a word of %zu characters", symbols);
    m->room = room;
    return GDN_OK;
}

/* Tokens of the bytes of a character that the vocabulary has not; false where it lacks one of them. */
static bool fall_back(const struct model *model, const char *at, size_t size, struct symbol *to) {
    if (!model->byte_fallback) return false;
    for (size_t i = 0; i < size; i++) {
        to[i].id = model->of_byte[(unsigned char)at[i]];
        if (to[i].id < 0) return false;
    }
    return true;
}

/* A word's characters as symbols; returns how many. An unknown token waits for those after it that it may be
 * fused with; bytes do not end that wait, as in the reference implementation. */
static int32_t symbols_of(struct merger *m, const char *word, size_t length) {
    const struct model *model = m->model;
    int32_t count = 0;
    bool unknown = false;
    for (size_t i = 0, size; i < length; i += size) {
        int32_t id = model->of_character[character_at(word + i, &size)];
        if (id < 0 && fall_back(model, word + i, size, &m->symbol[count])) {
            count += (int32_t)size;
        } else if (id < 0 && model->unknown >= 0) {
            if (unknown && !model->fuse_unk) m->symbol[count++].id = model->unknown;
            unknown = true;
        } else if (id >= 0) {
            if (unknown) m->symbol[count++].id = model->unknown;
            unknown = false;
            m->symbol[count++].id = id;
        }
    }
    if (unknown) m->symbol[count++].id = model->unknown;
    return count;
}

static int encode_anew(struct merger *m, const char *word, size_t length, struct ids *out) {
    TRY(reserve(m, length + 1));
    int32_t count = symbols_of(m, word, length);
    merge(m, count);
    TRY(ids_reserve(out, count));
    for (int32_t i = 0; i < count; i++)
        if (m->symbol[i].id >= 0) out->id[out->count++] = m->symbol[i].id;
    return GDN_OK;
}

static int remember(struct merger *m, struct cached *cached, uint64_t hash, const char *word, size_t length,
                    const int32_t *id, long count) {
    size_t bytes = (size_t)count * sizeof *id;
    if (m->memory.length + bytes + length > CACHED_BYTES) {
        memset(m->cached, 0, CACHED_WORDS * sizeof *m->cached);
        m->memory.length = 0;
    }
    *cached = (struct cached){hash, m->memory.length, (int32_t)length, (int32_t)count};
    TRY(text_add(&m->memory, (const char *)id, bytes));
    return text_add(&m->memory, word, length);
}

/* By merges alone. */
static int encode_word(struct merger *m, const char *word, size_t length, struct ids *out) {
    if (length > LONGEST_CACHED) return encode_anew(m, word, length, out);
    uint64_t hash = XXH3_64bits(word, length) | 1;
    struct cached *cached = &m->cached[hash >> 48];
    if (cached->hash == hash && (size_t)cached->length == length) {
        const char *at = m->memory.bytes + cached->at;
        size_t bytes = (size_t)cached->count * sizeof(int32_t);
        if (!memcmp(at + bytes, word, length)) {
            TRY(ids_reserve(out, cached->count));
            memcpy(out->id + out->count, at, bytes);
            out->count += cached->count;
            return GDN_OK;
        }
    }
    long before_word = out->count;
    TRY(encode_anew(m, word, length, out));
    return remember(m, cached, hash, word, length, out->id + before_word, out->count - before_word);
}

/* A long word in pieces: cut between two characters that are tokens and between which no merge comes. */
static int encode_long(struct merger *m, const char *word, size_t length, struct ids *out) {
    const struct model *model = m->model;
    size_t start = 0, size;
    int32_t last = character_at(word, &size);
    for (size_t i = size; i < length; i += size) {
        int32_t c = character_at(word + i, &size);
        if (model->of_character[last] >= 0 && model->of_character[c] >= 0 &&
            !pairs_find(&model->borders, last, c)) {
            TRY(encode_word(m, word + start, i - start, out));
            start = i;
        }
        last = c;
    }
    return encode_word(m, word + start, length - start, out);
}

int merger_encode(struct merger *m, const char *word, size_t length, struct ids *out) {
    if (m->model->ignore_merges) {
        int32_t id = vocabulary_find(&m->model->vocabulary, word, length);
        if (id >= 0) return ids_add(out, &id, 1);
    }
    return length < LONG_WORD ? encode_word(m, word, length, out) : encode_long(m, word, length, out);
}
