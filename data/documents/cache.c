#include "data/documents/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "data/documents/documents.h"
#include "data/documents/reader.h"
#include "data/documents/separator.h"
#include "data/files.h"
#include "data/format.h"
#include "data/output.h"
#include "kernels/base/status.h"

enum { BLOCK = 1 << 24 }; /* bytes of a file that a thread hashes at a time */

static void tell(const struct cache_options *options) {
    if (options->progress) options->progress(options->input, 0, 0);
}

/* Of bytes [first, first + size) of an open file. 0 or errno. */
static int hash_block(int descriptor, long first, size_t size, char *buffer, uint64_t *hash) {
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(descriptor, buffer + done, size - done, first + (long)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n ? errno : EIO; /* it has become shorter */
        done += (size_t)n;
    }
    *hash = XXH3_64bits(buffer, size);
    return 0;
}

/* Hashes blocks on all threads. 0 or errno. */
static int hash_blocks(const struct cache_options *options, int descriptor, long size, uint64_t *hash) {
    const long blocks = (size + BLOCK - 1) / BLOCK;
    int failed = 0;
#pragma omp parallel
    {
        char *buffer = malloc(BLOCK);
#pragma omp for schedule(dynamic)
        for (long b = 0; b < blocks; b++) {
            const long first = b * BLOCK, rest = size - first;
            int error = buffer ? hash_block(descriptor, first, (size_t)(rest < BLOCK ? rest : BLOCK), buffer,
                                            &hash[b])
                               : ENOMEM;
            if (omp_get_thread_num() == 0) tell(options);
            if (error) {
#pragma omp atomic write
                failed = error;
            }
        }
        free(buffer);
    }
    return failed;
}

/* A file's length, and the hash of its blocks' hashes. */
struct content {
    uint64_t size, hash;
};

static int hash_file(const struct cache_options *options, const char *path, struct content *out) {
    struct stat about;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC), error = descriptor < 0 ? errno : 0;
    if (!error && fstat(descriptor, &about)) error = errno;
    if (!error && !S_ISREG(about.st_mode)) error = EISDIR;
    const long size = error ? 0 : about.st_size;
    const size_t blocks = ((size_t)size + BLOCK - 1) / BLOCK;
    uint64_t *hash = calloc(blocks + 1, sizeof *hash);
    if (!hash) error = ENOMEM;
    if (!error) error = hash_blocks(options, descriptor, size, hash);
    if (!error) *out = (struct content){(uint64_t)size, XXH3_64bits(hash, blocks * sizeof *hash)};
    free(hash);
    if (descriptor >= 0) close(descriptor);
    return error ? gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(error)) : GDN_OK;
}

/* What a file's documents are, its name says (reader.h); data.format must say the same. */
static int verify_name(const struct cache_options *options, const char *path) {
    if (reader_is_lines(path) == options->lines) return GDN_OK;
    return options->lines
               ? gdn_fail(
                     GDN_INPUT,
                     "%s: the name of a file of JSON lines ends in .jsonl, .jsonl.gz or .jsonl.zst; text "
                     "is data.format text",
                     path)
               : gdn_fail(GDN_INPUT, "%s is lines of JSON by its name: data.format jsonl is expected", path);
}

static int hash_files(const struct cache_options *options, const struct path_list *files,
                      XXH3_state_t *state) {
    for (int i = 0; i < files->count; i++) {
        const char *path = files->paths[i], *dot = strrchr(path, '.');
        /* 1 were .gz files of which members that were damaged had been left out. */
        const uint64_t packed = !dot ? 0 : !strcmp(dot, ".gz") ? 3 : !strcmp(dot, ".zst") ? 2 : 0;
        struct content content;
        TRY(verify_name(options, path));
        TRY(hash_file(options, path, &content));
        XXH3_128bits_update(state, &packed, sizeof packed);
        XXH3_128bits_update(state, &content, sizeof content);
    }
    return GDN_OK;
}

static int hash_tokenizer(const struct cache_options *options, XXH3_state_t *state) {
    /* Another number where the file's content has changed. */
    const char *layout = options->messages ? "gdn messages 1" : "gdn tokens 1";
    const uint64_t hash = carried_hash(options->tokenizer);
    struct tokenizer *tokenizer;
    int32_t separator;
    TRY(carried_open(options->tokenizer, &tokenizer));
    int status = separator_find(tokenizer, options->tokenizer, NULL, &separator);
    tokenizer_close(tokenizer);
    TRY(status);
    XXH3_128bits_update(state, layout, strlen(layout) + 1);
    XXH3_128bits_update(state, &hash, sizeof hash);
    XXH3_128bits_update(state, &separator, sizeof separator);
    const char *field = options->lines ? options->field : "";
    XXH3_128bits_update(state, field, strlen(field) + 1);
    if (options->messages) XXH3_128bits_update(state, options->messages, strlen(options->messages) + 1);
    return GDN_OK;
}

int cache_key(const struct cache_options *options, char key[CACHE_KEY]) {
    struct path_list files = {0};
    XXH3_state_t *state = XXH3_createState();
    if (!state) return gdn_fail(GDN_INTERNAL, "no memory to tell files from others");
    XXH3_128bits_reset(state);
    int status = files_find(&options->inputs, &text_format, &files);
    if (!status) status = hash_tokenizer(options, state);
    if (!status) status = hash_files(options, &files, state);
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(key, CACHE_KEY, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
    XXH3_freeState(state);
    path_list_free(&files);
    return status;
}

/* ---------------------------------------------------------------------------------------- the folder */

/* Makes a folder and those that it lies in. */
static int make_folder(const char *path) {
    char *name = strdup(path);
    if (!name) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    int failed = 0;
    for (char *at = name + 1; !failed; at++) {
        if (*at && *at != '/') continue;
        const char end = *at;
        *at = 0;
        failed = mkdir(name, 0777) && errno != EEXIST ? errno : 0;
        *at = end;
        if (!end) break;
    }
    free(name);
    return failed ? gdn_fail(GDN_INPUT, "data.cache: folder %s cannot be made: %s", path, strerror(failed))
                  : GDN_OK;
}

/* Where a key's files are. */
struct place {
    char *tokens, *sum, *lock;
};

static int find_place(const char *folder, const char *key, struct place *out) {
    *out = (struct place){0};
    if (asprintf(&out->tokens, "%s/%s.h5", folder, key) < 0) out->tokens = NULL;
    if (asprintf(&out->sum, "%s/%s.xxh3", folder, key) < 0) out->sum = NULL;
    if (asprintf(&out->lock, "%s/%s.lock", folder, key) < 0) out->lock = NULL;
    return out->tokens && out->sum && out->lock ? GDN_OK : gdn_fail(GDN_INTERNAL, "%s: no memory", folder);
}

static void free_place(struct place *place) {
    free(place->tokens);
    free(place->sum);
    free(place->lock);
}

enum { SUM_TEXT = 64 };

static void sum_text(const struct content *content, char out[SUM_TEXT]) {
    snprintf(out, SUM_TEXT, "%016" PRIx64 " %" PRIu64 "\n", content->hash, content->size);
}

/* Whether the token file is there and is what was written. */
static bool is_whole(const struct cache_options *options, const struct place *place) {
    char right[SUM_TEXT], found[SUM_TEXT] = "";
    struct content content;
    FILE *file = fopen(place->sum, "r");
    if (!file) return false;
    const bool read = fgets(found, sizeof found, file);
    fclose(file);
    if (!read || access(place->tokens, R_OK)) return false;
    if (hash_file(options, place->tokens, &content)) {
        gdn_failure_clear();
        return false;
    }
    sum_text(&content, right);
    return !strcmp(found, right);
}

static int fill(const struct cache_options *options, const struct place *place,
                const struct path_list *files) {
    const struct documents_options wanted = {.output = place->tokens,
                                             .option = "data.cache",
                                             .format = &hdf5_format,
                                             .tokenizer = options->tokenizer,
                                             .field = options->field,
                                             .messages = options->messages,
                                             .files = *files,
                                             .progress = options->progress,
                                             .input = options->input};
    struct documents_written written;
    struct content content;
    char text[SUM_TEXT];
    TRY(documents_write(&wanted, &written));
    TRY(hash_file(options, place->tokens, &content));
    sum_text(&content, text);
    return output_text(place->sum, text, strlen(text));
}

/* Others may have other files, or these have changed since the key was made. */
static int make(const struct cache_options *options, const char *key, const struct place *place) {
    char now[CACHE_KEY];
    struct path_list files = {0};
    unlink(place->sum);
    int status = files_find(&options->inputs, &text_format, &files);
    if (!status) status = fill(options, place, &files);
    path_list_free(&files);
    if (!status) status = cache_key(options, now);
    if (!status && strcmp(now, key))
        status =
            gdn_fail(GDN_INPUT,
                     "%s: the files are not those that were read before, or others than rank 0 has; start "
                     "again, with the same files on every node",
                     options->inputs.paths[0]);
    if (status) unlink(place->tokens), unlink(place->sum);
    return status;
}

/* Waits until no other process makes the file. */
static int lock(const struct cache_options *options, const struct place *place, int *descriptor) {
    const struct timespec pause = {.tv_nsec = 200000000};
    *descriptor = open(place->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*descriptor < 0)
        return gdn_fail(GDN_INPUT, "data.cache: %s cannot be written: %s", place->lock, strerror(errno));
    while (flock(*descriptor, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return gdn_fail(GDN_INPUT, "data.cache: %s cannot be locked: %s", place->lock, strerror(errno));
        tell(options);
        nanosleep(&pause, NULL);
    }
    return GDN_OK;
}

int cache_path(const char *folder, const char key[CACHE_KEY], char **path) {
    struct place place;
    int status = find_place(folder, key, &place);
    *path = place.tokens, place.tokens = NULL;
    free_place(&place);
    return status;
}

int cache_need(const struct cache_options *options, const char key[CACHE_KEY], char **path, bool *made,
               bool *damaged) {
    struct place place;
    int descriptor = -1;
    *path = NULL;
    *made = *damaged = false;
    int status = find_place(options->folder, key, &place);
    if (!status && !is_whole(options, &place)) {
        status = make_folder(options->folder);
        if (!status) status = lock(options, &place, &descriptor);
        if (!status && !is_whole(options, &place)) { /* nobody else has made it meanwhile */
            *made = true;
            *damaged = !access(place.tokens, F_OK);
            status = make(options, key, &place);
        }
        if (descriptor >= 0) close(descriptor);
    }
    if (!status) *path = place.tokens, place.tokens = NULL;
    free_place(&place);
    return status;
}
