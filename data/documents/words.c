#include "data/documents/words.h"

#include <omp.h>
#include <stdlib.h>

#include "data/documents/batch.h"
#include "data/documents/pieces.h"
#include "data/tokenizer/characters.h"
#include "kernels/base/status.h"

/* A thread's own. */
struct counter {
    const struct pattern *pattern;
    OnigRegion *region;
    struct words words;
    struct text repaired;
};

static int add(struct words *words, const char *word, size_t length, long count) {
    int32_t number = vocabulary_find(&words->names, word, length);
    if (number < 0) {
        number = (int32_t)words->names.end;
        if (number == INT32_MAX) return gdn_fail(GDN_INPUT, "there are more than %d words", INT32_MAX);
        TRY(vocabulary_add(&words->names, word, length, number));
        if (number >= words->room) {
            long room = 2 * words->room + 1024, *grown = realloc(words->count, (size_t)room * sizeof *grown);
            if (!grown) return gdn_fail(GDN_INTERNAL, "no memory for %ld words", room);
            words->count = grown;
            words->room = room;
        }
        words->count[number] = 0;
    }
    words->count[number] += count;
    return GDN_OK;
}

static int take(void *state, struct document *document, const char *text, size_t length) {
    struct counter *counter = state;
    (void)document;
    if (characters_valid(text, length) < length) {
        counter->repaired.length = 0;
        TRY(characters_repair(text, length, &counter->repaired));
        text = counter->repaired.bytes;
        length = counter->repaired.length;
    }
    struct search search = search_begin(counter->pattern, counter->region, text, length);
    size_t done = 0, start, end;
    for (bool found = length > 0; found;) {
        TRY(search_next(&search, &start, &end, &found));
        if (!found) start = end = length;
        if (done < start) TRY(add(&counter->words, text + done, start - done, 1));
        if (start < end) TRY(add(&counter->words, text + start, end - start, 1));
        done = end;
    }
    return GDN_OK;
}

static int join(struct words *to, const struct words *from) {
    for (int32_t i = 0; i < from->names.end; i++) {
        size_t length;
        const char *word = vocabulary_name(&from->names, i, &length);
        TRY(add(to, word, length, from->count[i]));
    }
    return GDN_OK;
}

static void tell(void *input, long done) {
    const struct words_source *source = input;
    source->progress(source->input, done, pieces_bytes(source->files));
}

int words_count(const struct words_source *source, const struct pattern *pattern, struct words *out) {
    int threads = omp_get_max_threads(), status = GDN_OK;
    struct counter *counter = calloc((size_t)threads, sizeof *counter);
    void **state = calloc((size_t)threads, sizeof *state);
    *out = (struct words){.count = NULL};
    if (!counter || !state) status = gdn_fail(GDN_INTERNAL, "no memory to count words");
    for (int i = 0; i < threads && !status; i++) {
        counter[i] = (struct counter){.pattern = pattern, .region = onig_region_new()};
        state[i] = &counter[i];
        if (!counter[i].region) status = gdn_fail(GDN_INTERNAL, "no memory to count words");
    }
    struct batch batch = {.field = source->field,
                          .threads = threads,
                          .state = state,
                          .take = take,
                          .progress = source->progress ? tell : NULL,
                          .progress_input = (void *)source};
    if (source->progress) tell((void *)source, 0);
    if (!status) status = batch_run(&batch, source->files, WHOLE_FILE);
    for (int i = 0; counter && i < threads; i++) {
        if (!status) status = join(out, &counter[i].words);
        words_free(&counter[i].words);
        text_free(&counter[i].repaired);
        if (counter[i].region) onig_region_free(counter[i].region, 1);
    }
    free(counter);
    free(state);
    return status;
}

void words_free(struct words *words) {
    vocabulary_free(&words->names);
    free(words->count);
}
