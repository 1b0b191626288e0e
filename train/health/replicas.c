#include "train/health/replicas.h"

#include <stdlib.h>
#include <string.h>

enum { HALVES = 2 }; /* a hash travels as two doubles of 32 bits each, which are exact */

static const double ABSENT = -1;

/* What a rank found. */
struct finding {
    int score; /* peers that disagree with it about the tensor where most do */
    int tensor;
};

struct replicas {
    struct mesh *mesh;
    const struct table *table, *global;
    const struct ops *ops;
    int *place;           /* [table->rows] the same tensor's row in `global` */
    uint64_t *hash;       /* [table->rows] */
    uint64_t *found;      /* [table->rows] the same where passes may write it; may be `hash` */
    double *mine, *all;   /* [global->rows, HALVES], [longest axis] of these */
    int *score;           /* [global->rows] peers that disagree about it */
    struct finding *rank; /* [ranks] */
    int *off;             /* [ranks] */
};

/* ------------------------------------------------------------------------------------------- creation */

/* Both tables are in the model's order, so that each search goes on where the last one ended. */
static int find_places(struct replicas *x) {
    int at = 0;
    for (int i = 0; i < x->table->rows; i++) {
        int tried = 0;
        while (tried < x->global->rows && strcmp(x->global->row[at].name, x->table->row[i].name))
            at = (at + 1) % x->global->rows, tried++;
        if (tried == x->global->rows)
            return gdn_fail(GDN_INTERNAL, "the model has no tensor %s", x->table->row[i].name);
        x->place[i] = at;
    }
    return 0;
}

static int build(struct replicas *x) {
    size_t rows = (size_t)x->table->rows, all = (size_t)x->global->rows, ranks = (size_t)x->mesh->size,
           max = 1;
    for (int a = 0; a < axes_count(); a++)
        if ((size_t)x->mesh->axis[a].size > max) max = (size_t)x->mesh->axis[a].size;
    x->place = calloc(rows + 1, sizeof *x->place);
    x->hash = calloc(rows + 1, sizeof *x->hash);
    x->mine = calloc(all * HALVES + 1, sizeof *x->mine);
    x->all = calloc(all * HALVES * max + 1, sizeof *x->all);
    x->score = calloc(all + 1, sizeof *x->score);
    x->rank = calloc(ranks, sizeof *x->rank);
    x->off = calloc(ranks, sizeof *x->off);
    x->found = x->ops->device->host ? x->hash : x->ops->device->reserve((rows + 1) * sizeof *x->found);
    if (!x->place || !x->hash || !x->mine || !x->all || !x->score || !x->rank || !x->off || !x->found)
        return gdn_fail(GDN_INTERNAL, "out of memory for hashes of %d tensors on %d ranks", x->global->rows,
                        x->mesh->size);
    return find_places(x);
}

int replicas_create(struct mesh *mesh, const struct table *table, const struct table *global,
                    const struct ops *ops, struct replicas **out) {
    struct replicas *x = *out = calloc(1, sizeof *x);
    int status = x ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for hashes of tensors");
    if (x) {
        *x = (struct replicas){.mesh = mesh, .table = table, .global = global, .ops = ops};
        status = build(x);
    }
    status = mesh_agree(mesh, status);
    if (!status) return 0;
    replicas_free(x);
    *out = NULL;
    return status;
}

void replicas_free(struct replicas *x) {
    if (!x) return;
    if (x->found && x->found != x->hash) x->ops->device->release(x->found);
    free(x->place);
    free(x->hash);
    free(x->mine);
    free(x->all);
    free(x->score);
    free(x->rank);
    free(x->off);
    free(x);
}

/* ------------------------------------------------------------------------------------------ comparison */

static int hash_all(struct replicas *x, const real *weight) {
    const struct device *device = x->ops->device;
    const size_t bytes = (size_t)x->table->rows * sizeof *x->hash;
    device->clear(x->found, bytes);
    for (int i = 0; i < x->table->rows; i++) {
        const struct row *row = &x->table->row[i];
        x->ops->add_hash(weight + row->offset, 1, row->count, row->count, 0, 0, &x->found[i]);
    }
    if (x->found != x->hash) device->download(x->hash, x->found, bytes);
    return device->status();
}

/* May several ranks of the axis hold this part of the row? One that is not split is held by all tensor ranks,
 * or, where they hold whole connections, by one. */
static bool may_repeat(const struct row *row, enum mesh_axis axis) {
    if (axis == AXIS_TENSOR) return row->split == SPLIT_NONE;
    if (axis == AXIS_PIPELINE) return row->owners > 1;
    return axis_rows[axis].gradients;
}

/* Exchanges the hashes of rows that several ranks of the axis may hold, and counts who disagrees. */
static int compare_over(struct replicas *x, enum mesh_axis which) {
    struct axis *axis = &x->mesh->axis[which];
    const int count = x->global->rows * HALVES;
    if (axis->size == 1) return 0;
    for (int i = 0; i < count; i++) x->mine[i] = ABSENT;
    for (int i = 0; i < x->table->rows; i++) {
        const struct row *row = &x->table->row[i];
        if (!may_repeat(row, which)) continue;
        double *at = x->mine + x->place[i] * HALVES;
        at[0] = (double)(x->hash[i] >> 32), at[1] = (double)(uint32_t)x->hash[i];
    }
    axis_gather_doubles(axis, x->mine, count, x->all);
    if (axis->status) return axis->status;
    for (int i = 0; i < count; i += HALVES) {
        if (x->mine[i] == ABSENT) continue;
        for (int r = 0; r < axis->size; r++) {
            const double *other = x->all + r * count + i;
            x->score[i / HALVES] +=
                other[0] != ABSENT && (other[0] != x->mine[i] || other[1] != x->mine[i + 1]);
        }
    }
    return 0;
}

/* The tensor that most peers disagree about, the first of several. */
static struct finding worst_of(const struct replicas *x) {
    struct finding worst = {0, 0};
    for (int i = 0; i < x->global->rows; i++)
        if (x->score[i] > worst.score) worst = (struct finding){x->score[i], i};
    return worst;
}

static void judge(struct replicas *x, struct replicas_verdict *verdict) {
    int top = 0, ranks = x->mesh->size, disagree = 0;
    for (int r = 0; r < ranks; r++) {
        if (x->rank[r].score > top) top = x->rank[r].score;
        disagree += x->rank[r].score > 0;
    }
    for (int r = 0; r < ranks; r++)
        if (x->rank[r].score == top) x->off[verdict->count++] = r;
    verdict->rank = x->off;
    verdict->undecided = verdict->count == disagree; /* nobody has more on his side */
    verdict->tensor = x->global->row[x->rank[x->off[0]].tensor].name;
}

int replicas_compare(struct replicas *x, const real *weight, struct replicas_verdict *verdict) {
    *verdict = (struct replicas_verdict){0};
    if (x->mesh->size == 1) return 0;
    TRY(mesh_agree(x->mesh, hash_all(x, weight)));
    memset(x->score, 0, (size_t)x->global->rows * sizeof *x->score);
    for (int a = 0; a < axes_count(); a++) TRY(compare_over(x, (enum mesh_axis)a));
    struct finding mine = worst_of(x);
    int any = mesh_any(x->mesh, mine.score > 0);
    if (any <= 0) return any < 0 ? GDN_INTERNAL : 0;
    TRY(mesh_gather(x->mesh, &mine, sizeof mine, x->rank));
    judge(x, verdict);
    return 0;
}
