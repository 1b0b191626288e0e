/* Checks that a resumed run has the data it began with: the shuffle and the length of an epoch follow from
 * the number of tokens, so on other data the order of samples would be another. */
#include "train/run/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A line for each source, in the configuration's order: "96000 tokens, xxh3 0123456789abcdef". */
static int write_lines(struct sampler *data, FILE *out) {
    for (int k = 0; k < sampler_sources(data); k++) {
        struct tokens_identity identity;
        TRY(sampler_identify(data, k, &identity));
        fprintf(out, "%ld tokens, xxh3 %016" PRIx64 "\n", identity.tokens, identity.hash);
    }
    return 0;
}

static int create_text(struct sampler *data, char **text) {
    size_t length;
    FILE *out = open_memstream(text, &length);
    int status = out ? write_lines(data, out) : 0;
    if (!out || fclose(out)) return gdn_fail(GDN_INTERNAL, "out of memory for what the data are");
    return status;
}

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

enum { SOURCE_NAME = 256 };

/* The first source whose lines differ: its name as configured, and its line now and before. False: none. */
static bool find_difference(const struct data_config *config, const char *now, const char *before,
                            char name[SOURCE_NAME], long tokens[2]) {
    for (int k = 0; *now || *before; k++, now = next_line(now), before = next_line(before)) {
        size_t length = strcspn(now, "\n");
        if (length == strcspn(before, "\n") && !strncmp(now, before, length)) continue;
        const bool mixed = config->train.count == 0;
        if (!mixed || k < config->num_sources)
            path_list_name(mixed ? &config->sources[k].path : &config->train, name, SOURCE_NAME);
        tokens[0] = strtol(now, NULL, 10), tokens[1] = strtol(before, NULL, 10);
        return true;
    }
    return false;
}

/* Rank 0 alone: other ranks have been found to have the same data. */
static int compare(struct run_data *data, const struct data_config *config, const char *before, bool accept,
                   FILE *log) {
    char name[SOURCE_NAME] = "";
    long tokens[2];
    TRY(create_text(data->sampler, &data->text));
    if (!before || !find_difference(config, data->text, before, name, tokens)) return 0;
    char text[1024], had[40] = "others";
    if (tokens[0] != tokens[1]) snprintf(had, sizeof had, "%ld", tokens[1]);
    snprintf(text, sizeof text, "%s has %ld tokens, and had %s when it was made", name, tokens[0], had);
    data->changed = true;
    if (accept && log)
        fprintf(log, "gdn: note: the training data are not those of the checkpoint: %s\n", text);
    if (accept) return 0;
    return gdn_fail(
        GDN_INPUT,
        "the training data are not those of the checkpoint: %s\n"
        "  Their order follows from how many there are, so this would be another training. Give the "
        "data back,\n  start afresh in another run directory, or go on with these: --data-changed "
        "accept",
        text);
}

/* The text to all ranks, which all hand it to checkpoints. */
static int share_text(struct run_data *data, const struct mesh *mesh) {
    long length = data->text ? (long)strlen(data->text) + 1 : 0;
    TRY(mesh_broadcast(mesh, &length, sizeof length));
    if (mesh->rank) data->text = malloc((size_t)length);
    TRY(mesh_agree(mesh, data->text ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for what the data are")));
    return mesh_broadcast(mesh, data->text, length);
}

int run_data_match(struct run_data *data, const struct config *config, const struct mesh *mesh,
                   const char *before, bool accept, FILE *log) {
    TRY(mesh_agree(mesh, mesh->rank == 0 ? compare(data, &config->data, before, accept, log) : 0));
    TRY(mesh_broadcast(mesh, &data->changed, sizeof data->changed));
    return mesh->size > 1 ? share_text(data, mesh) : 0;
}
