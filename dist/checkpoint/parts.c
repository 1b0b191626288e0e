#include "dist/checkpoint/parts.h"
#include "kernels/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void parts_name(const struct parts *parts, int dataset, char name[ROWS_NAME]) {
    const struct row *row = parts_row(parts, dataset);
    int moment = parts->dataset[dataset].moment;
    char group[ROWS_NAME] = "model";
    if (moment >= 0) snprintf(group, sizeof group, "optimizer/%s", row->treatment.moments->name[moment]);
    rows_dataset_name(row, group, name);
}

const struct row *parts_row(const struct parts *parts, int dataset) {
    return &parts->global->row[parts->dataset[dataset].row];
}

/* ------------------------------------------------------------------------------------------- datasets */

static bool has_moment(const struct parts *parts, const struct row *row, int moment) {
    return moment < 0 || (parts->moments && row->treatment.moments && moment < row->treatment.moments->count);
}

static int list_datasets(struct parts *out) {
    size_t most = (1 + MOMENTS) * (size_t)out->rows;
    out->dataset = malloc((most + 1) * sizeof *out->dataset);
    out->number = malloc((most + 1) * sizeof *out->number);
    if (!out->dataset || !out->number)
        return gdn_fail(GDN_INTERNAL, "out of memory for the datasets of a checkpoint");
    for (int moment = -1; moment < MOMENTS; moment++)
        for (int i = 0; i < out->rows; i++) {
            bool there = has_moment(out, &out->global->row[i], moment);
            out->number[(1 + moment) * out->rows + i] = there ? out->datasets : -1;
            if (there) out->dataset[out->datasets++] = (struct dataset){i, moment};
        }
    return 0;
}

/* ------------------------------------------------------------------ rows of the rank in the global table */

static int by_name(const void *a, const void *b) {
    return strcmp((*(const struct row *const *)a)->name, (*(const struct row *const *)b)->name);
}

static int find_rows(const struct table *table, const struct table *global, const struct row **sorted,
                     int *out) {
    for (int i = 0; i < global->rows; i++) sorted[i] = &global->row[i];
    qsort(sorted, (size_t)global->rows, sizeof *sorted, by_name);
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i], *const * found;
        found = bsearch(&row, sorted, (size_t)global->rows, sizeof *sorted, by_name);
        if (!found || (*found)->shape[0] != row->shape[0] || (*found)->shape[1] != row->shape[1])
            return gdn_fail(GDN_INTERNAL, "tensor %s of a rank's table is not that of the whole model",
                            row->name);
        out[i] = (int)(*found - global->row);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- listing */

struct lister {
    const struct checkpoint_content *content;
    struct parts *out;
    int room;
    bool first_copy;  /* of the ranks that hold the same, this one answers for what is not sharded */
    bool responsible; /* the same, for what is */
};

static int add(struct lister *l, int moment, const struct piece *run, real *memory, bool counts) {
    struct parts *out = l->out;
    int dataset = out->number[(1 + moment) * out->rows + out->row[run->row]];
    struct rectangle cut[3];
    const struct row *row = &l->content->table->row[run->row];
    int n = rows_cut(row, run->first, run->count, cut);
    if (out->count + n > l->room) {
        int room = 2 * l->room + 64;
        struct part *grown = realloc(out->part, (size_t)room * sizeof *grown);
        if (!grown) return gdn_fail(GDN_INTERNAL, "out of memory for the parts of a checkpoint");
        out->part = grown, l->room = room;
    }
    for (int i = 0; i < n; i++)
        out->part[out->count++] =
            (struct part){.dataset = dataset, .where = cut[i], .memory = memory, .counts = counts};
    return 0;
}

static int add_weights(struct lister *l, const struct piece *run, bool counts) {
    const struct checkpoint_content *c = l->content;
    long place = c->owned ? run->moment : c->table->row[run->row].offset + run->first;
    return add(l, -1, run, c->state->weight + place, counts);
}

static int add_moments(struct lister *l, const struct piece *run, bool counts) {
    const struct checkpoint_content *c = l->content;
    for (int m = 0; has_moment(l->out, &c->table->row[run->row], m); m++) {
        long place = c->shards ? shards_place(c->shards, run, m) : run->moment;
        TRY(add(l, m, run, c->state->moment[m] + place, counts));
    }
    return 0;
}

/* One piece, or a whole row where there are no shards. */
static int add_run(struct lister *l, const struct piece *run, enum parts_use use) {
    const struct row *row = &l->content->table->row[run->row];
    bool sharded =
        l->content->shards && (row->zone == ZONE_LARGE || row->zone == ZONE_SHARED_LARGE); /* over copies */
    bool counts = row->counted && l->responsible && (sharded || l->first_copy);
    if (use == PARTS_READ) return add_moments(l, run, counts);
    if (!counts) return 0;
    TRY(add_weights(l, run, true));
    return add_moments(l, run, true);
}

static int add_runs(struct lister *l, enum parts_use use) {
    const struct table *table = l->content->table;
    const struct shards *shards = l->content->shards;
    if (shards)
        for (int i = 0; i < shards->pieces; i++) TRY(add_run(l, &shards->piece[i], use));
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        struct piece all = {.row = i, .count = row->count, .moment = row->offset};
        if (!shards) TRY(add_run(l, &all, use));
        /* Weights are read whole whatever the shards. */
        if (use == PARTS_READ) TRY(add_weights(l, &all, row->counted && l->responsible && l->first_copy));
    }
    return 0;
}

static int by_place(const void *a, const void *b) {
    const struct part *x = a, *y = b;
    if (x->dataset != y->dataset) return x->dataset < y->dataset ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (x->where.at[i] != y->where.at[i]) return x->where.at[i] < y->where.at[i] ? -1 : 1;
    return 0;
}

/* Of ranks that all hold the whole model: is this rank, or a copy of it, the first of its axes? */
static bool first_part(const struct mesh *mesh) {
    bool first = true;
    for (int a = 0; a < axes_count(); a++) first &= axis_rows[a].gradients || mesh->axis[a].index == 0;
    return first;
}

int parts_create(const struct mesh *mesh, const struct checkpoint_content *content, enum parts_use use,
                 struct parts *out) {
    const struct table *table = content->table, *global = content->global;
    *out =
        (struct parts){.global = global, .rows = global->rows, .moments = content->state->moment[0] != NULL};
    struct lister l = {.content = content, .out = out};
    l.first_copy = mesh->axis[AXIS_COPIES].index == 0;
    l.responsible = table != global || first_part(mesh);
    const struct row **sorted = malloc((size_t)(global->rows + 1) * sizeof *sorted);
    out->row = malloc((size_t)(table->rows + 1) * sizeof *out->row);
    int status = sorted && out->row ? find_rows(table, global, sorted, out->row)
                                    : gdn_fail(GDN_INTERNAL, "out of memory for the parts of a checkpoint");
    if (!status) status = list_datasets(out);
    if (!status) status = add_runs(&l, use);
    free(sorted);
    if (status)
        parts_free(out);
    else if (out->count)
        qsort(out->part, (size_t)out->count, sizeof *out->part, by_place);
    return status;
}

void parts_free(struct parts *parts) {
    free(parts->dataset);
    free(parts->number);
    free(parts->row);
    free(parts->part);
    *parts = (struct parts){0};
}

/* ------------------------------------------------------------------------------------------- packing */

int parts_each(const struct parts *parts, parts_take *take, void *context) {
    long room = (1 << 18) / (long)sizeof(real); /* in cache */
    for (int i = 0; i < parts->count; i++)
        if (parts->part[i].where.size[1] > room) room = parts->part[i].where.size[1];
    real *buffer = malloc((size_t)room * sizeof(real));
    if (!buffer) return gdn_fail(GDN_INTERNAL, "out of memory for the parts of a checkpoint");
    int status = 0;
    for (int i = 0; i < parts->count && !status; i++) {
        const struct part *part = &parts->part[i];
        long rows = part->where.size[0], block = room / part->where.size[1];
        for (long first = 0; first < rows && !status; first += block) {
            long n = rows - first < block ? rows - first : block;
            rows_pack(&part->where, part->memory, first, n, buffer);
            status = take(context, part, first, n, buffer);
        }
    }
    free(buffer);
    return status;
}
