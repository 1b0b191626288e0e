#include "train/huggingface/source.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/base/append.h"
#include "kernels/base/status.h"
#include "train/huggingface/names.h"

static const struct stored_tensor *find(const struct source *s, const struct row *row) {
    char name[NAME_LONGEST];
    return safetensors_find(&s->folder, name_outside(row->name, name));
}

static bool has(void *context, const struct row *row) {
    return find(context, row) != NULL;
}

static int read_lines(void *context, const struct row *row, long first, long n, real *out) {
    const long width = row->shape[1];
    safetensors_read(find(context, row), (size_t)(first * width), (size_t)(n * width), out);
    return GDN_OK;
}

/* ------------------------------------------------------------------------------------------- checks */

static void shape_text(const long *shape, int ndim, char text[160]) {
    size_t used = text_append(text, 160, 0, "[");
    for (int d = 0; d < ndim; d++) used = text_append(text, 160, used, "%s%ld", d ? ", " : "", shape[d]);
    text_append(text, 160, used, "]");
}

static int verify_tensor(const struct source *s, const struct stored_tensor *tensor, const struct row *row) {
    bool right = tensor->ndim == row->ndim;
    for (int d = 0; d < row->ndim && right; d++) right = tensor->shape[d] == row->shape[d];
    if (!right) {
        char stored[160], wanted[160];
        shape_text(tensor->shape, tensor->ndim, stored);
        shape_text(row->shape, row->ndim, wanted);
        return gdn_fail(GDN_INPUT, "%s: tensor %s has the shape %s, but %s makes it %s", tensor->path,
                        tensor->name, stored, s->whose, wanted);
    }
    if (tensor->dtype->load) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s: tensor %s is %s; float32, bfloat16 or float16 is expected", tensor->path,
                    tensor->name, tensor->dtype->word);
}

/* A head that the embedding stands for may be there all the same. */
static int verify_tied(const struct source *s, const struct stored_tensor *head) {
    const struct stored_tensor *embedding = safetensors_find(&s->folder, NAME_EMBEDDING);
    if (embedding && embedding->dtype == head->dtype && embedding->bytes == head->bytes &&
        !memcmp(embedding->elements, head->elements, head->bytes))
        return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s: %s is other than %s, although tie_word_embeddings is true", head->path,
                    head->name, NAME_EMBEDDING);
}

/* Frequencies of rotary positions, which old files have: they follow from the configuration, and must. */
static int verify_frequencies(const struct source *s, const struct model_config *model,
                              const struct stored_tensor *tensor) {
    const int pairs = head_width(model) / 2;
    bool right = tensor->ndim == 1 && tensor->shape[0] == pairs && tensor->dtype->load;
    for (int i = 0; i < pairs && right; i++) {
        real stored;
        safetensors_read(tensor, (size_t)i, 1, &stored);
        double frequency = pow(model->rope_theta, -(double)i / pairs);
        right = fabs((double)stored - frequency) <= frequency / 128; /* bfloat16 has 8 bits */
    }
    return right ? GDN_OK
                 : gdn_fail(GDN_INPUT, "%s: %s are other rotary frequencies than those of %s", tensor->path,
                            tensor->name, s->whose);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

/* A tensor that is in no row of the table. */
static int verify_stranger(const struct source *s, const struct model_config *model,
                           const struct stored_tensor *tensor) {
    if (model->tie_embeddings && !strcmp(tensor->name, NAME_HEAD)) return verify_tied(s, tensor);
    if (ends_with(tensor->name, ".rotary_emb.inv_freq")) return verify_frequencies(s, model, tensor);
    return gdn_fail(GDN_INPUT, "%s: tensor %s is none of the model that %s describes", tensor->path,
                    tensor->name, s->whose);
}

static bool in_table(const struct table *global, const char *outside) {
    char name[NAME_LONGEST];
    for (int i = 0; i < global->rows; i++)
        if (!strcmp(name_outside(global->row[i].name, name), outside)) return true;
    return false;
}

static int verify(const struct source *s, const struct model_config *model, const struct table *global) {
    int known = 0;
    for (int i = 0; i < global->rows; i++) {
        const struct stored_tensor *tensor = find(s, &global->row[i]);
        if (!tensor) continue; /* found missing by who needs it */
        TRY(verify_tensor(s, tensor, &global->row[i]));
        known++;
    }
    for (int i = 0; i < s->folder.count && known < s->folder.count; i++)
        if (!in_table(global, s->folder.tensor[i]->name)) TRY(verify_stranger(s, model, s->folder.tensor[i]));
    return GDN_OK;
}

int source_open(const char *directory, const struct model_config *model, const char *whose,
                const struct table *global, struct source *out) {
    *out = (struct source){.whose = whose,
                           .weights = {.name = directory, .has = has, .read = read_lines, .context = out}};
    TRY(safetensors_folder_open(directory, &out->folder));
    int status = verify(out, model, global);
    if (status) source_close(out);
    return status;
}

void source_close(struct source *source) {
    safetensors_folder_close(&source->folder);
}
