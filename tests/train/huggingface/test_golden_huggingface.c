/* Models that transformers has made (tests/golden/make_huggingface.py), imported: the logits of every
 * position are those that it computed, and so is the text that is likeliest. Losses alone would not see heads
 * or rotary pairs in another order; that these are seen is tested too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/safetensors/safetensors.h"
#include "kernels/base/status.h"
#include "model/model.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/command/saved_model.h"
#include "train/huggingface/huggingface.h"

/* float32 on both sides, logits of up to 3 in size and sums of up to 40 terms. */
#define TOLERANCE 1e-5

enum { PROMPT = 8 };

/* A model and what transformers computed with it. */
struct golden {
    const char *folder;
    char *path; /* of the checkpoint */
    struct saved_model saved;
    struct edge_set active;
    const struct ops *ops;
    struct safetensors file;
    const int32_t *tokens, *greedy;
    long length, added;
};

static const struct stored_tensor *tensor_of(const struct golden *g, const char *name) {
    for (int i = 0; i < g->file.count; i++)
        if (!strcmp(g->file.tensor[i].name, name)) return &g->file.tensor[i];
    fail_msg("%s has no %s", g->file.path, name);
    return NULL;
}

static void open_golden(const char *folder, struct golden *g) {
    struct mesh alone = mesh_alone();
    struct edges edges;
    char path[512];
    *g = (struct golden){.folder = folder, .path = strdup(scratch_path("model.h5"))};
    unlink(g->path);
    FILE *nowhere = fopen("/dev/null", "w");
    snprintf(path, sizeof path, "%s/golden.safetensors", folder);
    if (huggingface_import(folder, g->path, nowhere) ||
        saved_model_load(&alone, g->path, NULL, 0, &g->saved) ||
        saved_model_place(&g->saved, &alone, NULL, &g->ops) || edges_create(&g->saved.config.model, &edges) ||
        edges_introduced(&edges, g->saved.config.model.delta.num_distances, &g->active) ||
        safetensors_open(path, &g->file))
        fail_msg("%s: %s", folder, gdn_failure());
    edges_free(&edges);
    fclose(nowhere);
    g->tokens = (const int32_t *)tensor_of(g, "tokens")->elements;
    g->greedy = (const int32_t *)tensor_of(g, "greedy")->elements;
    g->length = tensor_of(g, "tokens")->shape[0];
    g->added = tensor_of(g, "greedy")->shape[0];
}

static void close_golden(struct golden *g) {
    safetensors_close(&g->file);
    edge_set_free(&g->active);
    saved_model_free(&g->saved);
    free(g->path);
}

static struct decoder *start(const struct golden *g) {
    struct decoder *decoder;
    if (decoder_create(&g->saved.config.model, &g->saved.table, &g->saved.state, g->ops, g->length + g->added,
                       1, &decoder))
        fail_msg("%s", gdn_failure());
    return decoder;
}

/* The greatest difference of all logits. */
static double difference(const struct golden *g) {
    const int vocab = g->saved.config.model.vocab_size;
    real *right = malloc((size_t)vocab * sizeof *right);
    struct decoder *decoder = start(g);
    double most = 0;
    for (long t = 0; t < g->length; t++) {
        const real *logits = decoder_step(decoder, g->tokens[t], &g->active);
        safetensors_read(tensor_of(g, "logits"), (size_t)(t * vocab), (size_t)vocab, right);
        for (int v = 0; v < vocab; v++) most = fmax(most, fabs((double)logits[v] - (double)right[v]));
    }
    decoder_free(decoder);
    free(right);
    return most;
}

static void expect_greedy(const struct golden *g) {
    const int vocab = g->saved.config.model.vocab_size;
    struct decoder *decoder = start(g);
    const real *logits = NULL;
    for (long t = 0; t < PROMPT; t++) logits = decoder_step(decoder, g->tokens[t], &g->active);
    for (long t = 0; t < g->added; t++) {
        int best = 0;
        for (int v = 1; v < vocab; v++)
            if (logits[v] > logits[best]) best = v;
        assert_int_equal(best, g->greedy[t]);
        logits = decoder_step(decoder, best, &g->active);
    }
    decoder_free(decoder);
}

static char *const *folders;
static int num_folders;

static void same_logits(void **state) {
    (void)state;
    for (int i = 0; i < num_folders; i++) {
        struct golden g;
        open_golden(folders[i], &g);
        double most = difference(&g);
        print_message("%s: %.2g\n", folders[i], most);
        if (most > TOLERANCE) fail_msg("%s: logits differ by %g", folders[i], most);
        expect_greedy(&g);
        close_golden(&g);
    }
}

/* ------------------------------------------------------------------------------- what must not go unseen */

static real *weights_of(struct golden *g, const char *name, long *width) {
    for (int i = 0; i < g->saved.table.rows; i++) {
        const struct row *row = &g->saved.table.row[i];
        if (strcmp(row->name, name)) continue;
        assert_false(row->transposed);
        *width = row->shape[1];
        return g->saved.state.weight + row->offset;
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static void swap_lines(real *weights, long width, long a, long b) {
    for (long i = 0; i < width; i++) {
        real kept = weights[a * width + i];
        weights[a * width + i] = weights[b * width + i];
        weights[b * width + i] = kept;
    }
}

enum { HEAD = 8 }; /* channels */

/* The folder of a Llama of four heads, of which two share keys and values. */
static const char *plain(void) {
    for (int i = 0; i < num_folders; i++)
        if (strlen(folders[i]) > 6 && !strcmp(folders[i] + strlen(folders[i]) - 6, "/llama"))
            return folders[i];
    fail_msg("no folder llama among the arguments");
    return NULL;
}

/* Changes a tensor of the first layer; the logits must tell. */
static void expect_seen(const char *name, void (*change)(real *weights, long width)) {
    struct golden g;
    long width = 0;
    open_golden(plain(), &g);
    real *weights = weights_of(&g, name, &width);
    change(weights, width);
    assert_true(difference(&g) > 0.01);
    close_golden(&g);
}

/* Rotary pairs as neighbours in place of halves. */
static void interleave(real *weights, long width) {
    real *old = malloc((size_t)(HEAD * width) * sizeof *old);
    memcpy(old, weights, (size_t)(HEAD * width) * sizeof *old);
    for (long i = 0; i < HEAD; i++)
        memcpy(weights + (i % (HEAD / 2) * 2 + i / (HEAD / 2)) * width, old + i * width,
               (size_t)width * sizeof *old);
    free(old);
}

static void swap_heads(real *weights, long width) {
    for (long i = 0; i < HEAD; i++) swap_lines(weights, width, i, 2 * HEAD + i); /* of other K/V heads */
}

static void swap_two(real *weights, long width) {
    swap_lines(weights, width, 3, 5);
}

static void order_is_seen(void **state) {
    (void)state;
    expect_seen("layers.0.self_attn.q_proj.weight", interleave);
    expect_seen("layers.0.self_attn.q_proj.weight", swap_heads);
    expect_seen("layers.0.mlp.up_proj.weight", swap_two);
    expect_seen("layers.0.input_layernorm.weight", swap_two);
}

int main(int argc, char **argv) {
    folders = argv + 1, num_folders = argc - 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_logits), cmocka_unit_test(order_is_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
