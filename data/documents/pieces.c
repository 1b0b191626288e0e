#include "data/documents/pieces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "kernels/base/status.h"

/* A kill costs what a piece takes, and the last rank ends at most a piece after the others; each has a file.
 */
enum { LEAST_BYTES = 1 << 20, MOST_PIECES = 4096 };

/* A file that counts with its name, wherever the command is given, its size and the time of its last change.
 */
static int add_file(XXH3_state_t *state, const char *path) {
    struct stat about;
    char *whole = realpath(path, NULL);
    if (!whole || stat(path, &about)) {
        free(whole);
        return gdn_fail(GDN_INPUT, "%s: %s", path, strerror(errno));
    }
    const int64_t numbers[] = {about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
    XXH3_128bits_update(state, whole, strlen(whole) + 1);
    XXH3_128bits_update(state, numbers, sizeof numbers);
    free(whole);
    return GDN_OK;
}

/* With its number, since a file may be named twice. */
static int name_piece(struct piece *piece, int64_t number, const char *options) {
    XXH3_state_t *state = XXH3_createState();
    if (!state) return gdn_fail(GDN_INTERNAL, "no memory for a hash");
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, options, strlen(options) + 1);
    XXH3_128bits_update(state, &number, sizeof number);
    XXH3_128bits_update(state, &piece->range, sizeof piece->range);
    int status = GDN_OK;
    for (int i = 0; i < piece->files.count && !status; i++) status = add_file(state, piece->files.paths[i]);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(piece->name, sizeof piece->name, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    XXH3_freeState(state);
    return status;
}

static int add_piece(struct pieces *pieces, struct piece piece) {
    if (!(pieces->count & (pieces->count + 1))) { /* room for 1, 3, 7, … */
        struct piece *grown = realloc(pieces->piece, (2 * (size_t)pieces->count + 1) * sizeof *grown);
        if (!grown) return gdn_fail(GDN_INTERNAL, "no memory for pieces of files");
        pieces->piece = grown;
    }
    pieces->piece[pieces->count++] = piece;
    pieces->bytes += piece.bytes;
    return GDN_OK;
}

static int cut_file(struct pieces *pieces, char **path, long size, long most) {
    for (long from = 0; from < size; from += most) {
        long to = from + most < size ? from + most : LONG_MAX;
        TRY(add_piece(pieces, (struct piece){.files = {path, 1},
                                             .range = {from, to},
                                             .bytes = to == LONG_MAX ? size - from : most}));
    }
    return GDN_OK;
}

static int cut_files(const struct path_list *files, long most, struct pieces *out) {
    struct piece held = {.range = WHOLE_FILE};
    struct stat about;
    for (int i = 0; i < files->count; i++) {
        const char *path = files->paths[i];
        if (stat(path, &about)) return gdn_fail(GDN_INPUT, "%s: %s", path, strerror(errno));
        bool cut = about.st_size > most && reader_may_cut(path);
        if (held.files.count && (cut || held.bytes >= most)) {
            TRY(add_piece(out, held));
            held = (struct piece){.range = WHOLE_FILE};
        }
        if (cut) {
            TRY(cut_file(out, files->paths + i, about.st_size, most));
            continue;
        }
        if (!held.files.count) held.files.paths = files->paths + i;
        held.files.count++;
        held.bytes += about.st_size;
    }
    return held.files.count ? add_piece(out, held) : GDN_OK;
}

long pieces_bytes(const struct path_list *files) {
    struct stat about;
    long bytes = 0;
    for (int i = 0; i < files->count; i++)
        if (!stat(files->paths[i], &about)) bytes += about.st_size;
    return bytes;
}

int pieces_cut(const struct path_list *files, const char *options, struct pieces *out) {
    long most = LEAST_BYTES, all = pieces_bytes(files);
    *out = (struct pieces){0};
    while (all / most > MOST_PIECES) most *= 2; /* so that more files leave most cuts where they were */
    TRY(cut_files(files, most, out));
    for (int i = 0; i < out->count; i++) TRY(name_piece(&out->piece[i], i, options));
    return GDN_OK;
}
