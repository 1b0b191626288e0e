/* Words are lists of tokens, at first of their bytes. The most frequent pair is found by a heap; a merge
 * walks through the words that its pair was seen in, and what it changes there goes into the heap anew. */
#include "data/documents/train.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "data/documents/words.h"
#include "data/output_tokens.h"
#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/carried.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/pairs.h"

#define EXPRESSION                                                                                           \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"  \
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const char separator[] = "<|endoftext|>";

/* A pair of tokens, and the words that it was seen in, some of them more than once, and some no more. */
struct seen {
    int32_t left, right;
    long count;
    struct ids words;
    bool changed; /* since it was last put into the heap */
};

struct entry {
    long count; /* as it was */
    int32_t seen;
};

struct training {
    struct words words;
    int32_t *token; /* all words' tokens, one behind the other */
    size_t *start;  /* [words] */
    int32_t *length;
    struct seen *seen; /* [count] */
    long count, room;
    struct pairs pairs; /* to numbers of `seen`, as `id` */
    struct entry *heap; /* [entries] */
    long entries, heap_room;
    struct ids changed; /* numbers of `seen` whose count is another now */
    struct vocabulary names;
    json_t *merges;
};

static int grow_pairs(struct training *t) {
    struct pairs grown;
    TRY(pairs_create(&grown, (size_t)(2 * t->count + 1024)));
    for (int32_t i = 0; i < t->count; i++)
        *pairs_at(&grown, t->seen[i].left, t->seen[i].right) =
            (struct pair){t->seen[i].left, t->seen[i].right, 0, i};
    free(t->pairs.pair);
    t->pairs = grown;
    long room = 2 * t->count + 1024;
    struct seen *seen = realloc(t->seen, (size_t)room * sizeof *seen);
    if (!seen) return gdn_fail(GDN_INTERNAL, "no memory for %ld pairs", room);
    t->seen = seen;
    t->room = room;
    return GDN_OK;
}

/* The pair stands `by` times more in a word; it is seen there first where `word` is not −1. */
static int count_pair(struct training *t, int32_t left, int32_t right, long by, int32_t word) {
    struct pair *pair = t->count ? pairs_at(&t->pairs, left, right) : NULL;
    if (!pair || pair->left < 0) {
        if (t->count == t->room) TRY(grow_pairs(t));
        pair = pairs_at(&t->pairs, left, right);
        *pair = (struct pair){left, right, 0, (int32_t)t->count};
        t->seen[t->count++] = (struct seen){.left = left, .right = right};
    }
    struct seen *seen = &t->seen[pair->id];
    seen->count += by;
    if (word >= 0 && (!seen->words.count || seen->words.id[seen->words.count - 1] != word))
        TRY(ids_add(&seen->words, &word, 1));
    if (seen->changed) return GDN_OK;
    seen->changed = true;
    return ids_add(&t->changed, &pair->id, 1);
}

static bool before(const struct training *t, const struct entry *a, const struct entry *b) {
    const struct seen *x = &t->seen[a->seen], *y = &t->seen[b->seen];
    if (a->count != b->count) return a->count > b->count;
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static int push(struct training *t, struct entry entry) {
    if (t->entries == t->heap_room) {
        long room = 2 * t->heap_room + 1024;
        struct entry *heap = realloc(t->heap, (size_t)room * sizeof *heap);
        if (!heap) return gdn_fail(GDN_INTERNAL, "no memory for %ld pairs", room);
        t->heap = heap;
        t->heap_room = room;
    }
    long i = t->entries++;
    for (long up; i && before(t, &entry, &t->heap[up = (i - 1) / 2]); i = up) t->heap[i] = t->heap[up];
    t->heap[i] = entry;
    return GDN_OK;
}

static struct entry pop(struct training *t) {
    struct entry first = t->heap[0], last = t->heap[--t->entries];
    long i = 0;
    for (long down; (down = 2 * i + 1) < t->entries; i = down) {
        if (down + 1 < t->entries && before(t, &t->heap[down + 1], &t->heap[down])) down++;
        if (!before(t, &t->heap[down], &last)) break;
        t->heap[i] = t->heap[down];
    }
    t->heap[i] = last;
    return first;
}

static int push_changed(struct training *t) {
    for (long i = 0; i < t->changed.count; i++) {
        struct seen *seen = &t->seen[t->changed.id[i]];
        seen->changed = false;
        if (seen->count > 1) TRY(push(t, (struct entry){seen->count, t->changed.id[i]}));
    }
    t->changed.count = 0;
    return GDN_OK;
}

/* Ids of bytes are in the order of their characters. */
static int name_bytes(struct training *t, int32_t of_byte[256]) {
    int32_t id = 0;
    TRY(vocabulary_add(&t->names, separator, sizeof separator - 1, id++));
    for (int32_t c = 0; c < 0x144; c++) {
        char name[4];
        int byte = byte_level_byte(c);
        if (byte < 0) continue;
        of_byte[byte] = id;
        TRY(vocabulary_add(&t->names, name, character_put(c, name), id++));
    }
    return GDN_OK;
}

static int begin(struct training *t) {
    int32_t of_byte[256];
    long n = t->words.names.end;
    size_t used = 0;
    TRY(name_bytes(t, of_byte));
    t->token = malloc((t->words.names.names.length + 1) * sizeof *t->token);
    t->start = malloc((size_t)(n + 1) * sizeof *t->start);
    t->length = malloc((size_t)(n + 1) * sizeof *t->length);
    if (!t->token || !t->start || !t->length) return gdn_fail(GDN_INTERNAL, "no memory for %ld words", n);
    for (int32_t w = 0; w < n; w++) {
        size_t length;
        const char *word = vocabulary_name(&t->words.names, w, &length);
        t->start[w] = used;
        t->length[w] = (int32_t)length;
        for (size_t i = 0; i < length; i++) t->token[used++] = of_byte[(unsigned char)word[i]];
        for (size_t i = 1; i < length; i++)
            TRY(count_pair(t, t->token[used - length + i - 1], t->token[used - length + i], t->words.count[w],
                           w));
    }
    return push_changed(t);
}

/* One word with every pair (left, right) as `id`. */
static int merge_word(struct training *t, int32_t w, int32_t left, int32_t right, int32_t id) {
    int32_t *token = t->token + t->start[w], n = 0;
    long count = t->words.count[w];
    bool any = false;
    for (int32_t i = 1; i < t->length[w] && !any; i++) any = token[i - 1] == left && token[i] == right;
    if (!any) return GDN_OK;
    for (int32_t i = 1; i < t->length[w]; i++) TRY(count_pair(t, token[i - 1], token[i], -count, -1));
    for (int32_t i = 0; i < t->length[w]; i++) {
        bool both = i + 1 < t->length[w] && token[i] == left && token[i + 1] == right;
        token[n++] = both ? id : token[i];
        i += both;
    }
    t->length[w] = n;
    for (int32_t i = 1; i < n; i++) {
        bool made = token[i - 1] == id || token[i] == id;
        TRY(count_pair(t, token[i - 1], token[i], count, made ? w : -1));
    }
    return GDN_OK;
}

static int add_token(struct training *t, int32_t left, int32_t right, int32_t *id) {
    struct text whole = {0};
    size_t length[2];
    const char *half[2] = {vocabulary_name(&t->names, left, &length[0]),
                           vocabulary_name(&t->names, right, &length[1])};
    json_t *merge = json_pack("[s%, s%]", half[0], length[0], half[1], length[1]);
    int status =
        merge && !json_array_append_new(t->merges, merge) ? GDN_OK : gdn_fail(GDN_INTERNAL, "no memory");
    for (int i = 0; i < 2 && !status; i++) status = text_add(&whole, half[i], length[i]);
    *id = status ? -1 : vocabulary_find(&t->names, whole.bytes, whole.length);
    if (!status && *id < 0) { /* else two ways make it */
        *id = (int32_t)t->names.end;
        status = vocabulary_add(&t->names, whole.bytes, whole.length, *id);
    }
    text_free(&whole);
    return status;
}

static int train(struct training *t, const struct tokenizer_training *training) {
    time_t told = 0;
    while (t->names.count < training->vocab && t->entries) {
        if (training->merged && time(NULL) != told) {
            told = time(NULL);
            training->merged(training->input, t->names.count, training->vocab);
        }
        struct entry top = pop(t);
        struct seen *seen = &t->seen[top.seen];
        int32_t left = seen->left, right = seen->right, id;
        if (seen->count != top.count) continue; /* it was put in again when it changed */
        TRY(add_token(t, left, right, &id));
        struct ids words = seen->words;
        seen->words = (struct ids){0};
        int status = GDN_OK;
        for (long i = 0; i < words.count && !status; i++)
            status = merge_word(t, words.id[i], left, right, id);
        ids_free(&words);
        TRY(status);
        TRY(push_changed(t));
    }
    return GDN_OK;
}

static json_t *describe(struct training *t) {
    json_t *vocab = json_object();
    for (int32_t id = 0; id < t->names.end; id++) {
        size_t length;
        const char *name = vocabulary_name(&t->names, id, &length);
        json_object_setn_new(vocab, name, length, json_integer(id));
    }
    json_t *level = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                              "trim_offsets", 1, "use_regex", 0);
    json_t *added = json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", 0, "content", separator,
                              "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
    json_t *split = json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex", EXPRESSION,
                              "behavior", "Isolated", "invert", 0);
    json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:O}", "type", "BPE", "dropout",
                              "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                              "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", t->merges);
    return json_pack("{s:s, s:n, s:n, s:[o], s:n, s:{s:s, s:[o, O]}, s:n, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", added, "normalizer", "pre_tokenizer", "type",
                     "Sequence", "pretokenizers", split, level, "post_processor", "decoder", level, "model",
                     model);
}

static int write_json(const char *path, json_t *root) {
    int status = output_json(path, root, 1);
    json_decref(root);
    return status;
}

/* Where a tokenizer_config.json of `path` is to be written: beside a tokenizer.json, of which it is by name,
 * where there is none; else NULL. It would speak for files of other names as well, and for all others there.
 */
static int configuration_path(const char *path, char **out) {
    static const char own[] = "tokenizer.json";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    *out = NULL;
    if (strcmp(name, own)) return GDN_OK;
    if (!(*out = carried_configuration_path(path))) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    if (!access(*out, F_OK)) free(*out), *out = NULL;
    return GDN_OK;
}

static int write_files(struct training *t, const char *path) {
    char *beside;
    TRY(configuration_path(path, &beside));
    int status = GDN_OK;
    if (beside)
        status = write_json(beside, json_pack("{s:s, s:b, s:s, s:s}", "bos_token", separator,
                                              "clean_up_tokenization_spaces", 0, "eos_token", separator,
                                              "tokenizer_class", "PreTrainedTokenizerFast"));
    if (!status) {
        status = write_json(path, describe(t));
        if (status && beside) unlink(beside);
    }
    free(beside);
    return status;
}

int tokenizer_train(const struct tokenizer_training *training, long *vocab) {
    struct training t = {.merges = json_array()};
    struct words_source source = {&training->files, training->field, training->progress, training->input};
    struct pattern pattern = {0};
    const struct output_inputs documents = {"--output", (const char *const *)training->files.paths,
                                            training->files.count, "a document"};
    int status = output_file_verify(training->output, &documents);
    if (!status) status = pattern_open_regex(EXPRESSION, &pattern);
    if (!status) status = words_count(&source, &pattern, &t.words);
    if (!status) status = begin(&t);
    if (!status) status = train(&t, training);
    if (!status) status = write_files(&t, training->output);
    *vocab = t.names.count;
    for (long i = 0; i < t.count; i++) ids_free(&t.seen[i].words);
    pattern_close(&pattern);
    words_free(&t.words);
    vocabulary_free(&t.names);
    ids_free(&t.changed);
    json_decref(t.merges);
    free(t.token);
    free(t.start);
    free(t.length);
    free(t.seen);
    free(t.pairs.pair);
    free(t.heap);
    return status;
}
