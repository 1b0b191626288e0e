#include "dist/sync/rounds.h"

#include "dist/sync/exchange.h"

/* How a tensor lies in memory, of its global shape, and where a tensor rank's part of it is. */
struct place {
    long rows, columns;
    bool by_rows; /* the part is of consecutive rows, else of columns */
    long first;   /* its first one */
    long width;   /* how many */
    long count;   /* elements */
};

static struct place place_of(const struct row *row, int size, int index) {
    int down = row->transposed ? 1 : 0, across = 1 - down; /* dimensions of the tensor */
    int along = row->split == SPLIT_ROWS ? 0 : 1;          /* the one that is divided */
    struct place p = {.rows = row->shape[down], .columns = row->shape[across], .by_rows = along == down};
    p.first = split_first(row->shape[along], size, index);
    p.width = split_first(row->shape[along], size, index + 1) - p.first;
    p.count = p.width * row->shape[1 - along];
    return p;
}

static long elements(const struct row *row) {
    return row->shape[0] * row->shape[1];
}

struct rounds_size rounds_sizes(const struct table *table) {
    struct rounds_size size = {0};
    for (int i = 0; i < table->rows; i++) {
        const struct matrix_shape shape = deal_shape(table, i);
        long count = shape.rows * shape.columns;
        bool by_rows = place_of(&table->row[i], 1, 0).by_rows;
        if (!shape.split) continue;
        if (count > size.whole) size.whole = count;
        if (!by_rows && count > size.scratch) size.scratch = count;
    }
    return size;
}

/* -------------------------------------------------------------------------------------------- one matrix */

/* Between a matrix [rows, columns] and a part of its columns. */
static void copy_part(const struct rounds *r, const struct place *p, real *all, real *part, bool back) {
    const struct ops *ops = r->mesh->axis[AXIS_TENSOR].ops;
    real *at = all + p->first * (p->by_rows ? p->columns : 1);
    if (p->by_rows && back)
        ops->copy(p->count, at, part);
    else if (p->by_rows)
        ops->copy(p->count, part, at);
    else if (back)
        ops->copy_columns(p->rows, p->width, at, p->columns, part, p->width);
    else
        ops->copy_columns(p->rows, p->width, part, p->width, at, p->columns);
}

/* Between a matrix put together and what lies here of a rank's part: its own in the flat buffer, another's,
 * where that is of columns, in scratch, as it is exchanged. */
static void arrange(const struct rounds *r, const struct dealt *item, bool back) {
    const struct axis *tensor = &r->mesh->axis[AXIS_TENSOR];
    const struct matrix_shape shape = deal_shape(r->table, item->row);
    real *all = r->whole, *scratch = r->scratch;
    if (!shape.split) return;
    for (int i = item->row; i < item->row + shape.tensors; i++) {
        const struct row *row = &r->table->row[i];
        for (int peer = 0; peer < tensor->size; peer++) {
            const struct place p = place_of(row, tensor->size, peer);
            if (peer == tensor->index)
                copy_part(r, &p, all, r->x + row->offset, back);
            else if (!p.by_rows)
                copy_part(r, &p, all, scratch, back), scratch += p.count;
        }
        all += elements(row);
    }
}

/* Whoever's turn it is: every other rank's part, where it lies here. */
static int exchange_own(const struct rounds *r, struct exchange *e, const struct dealt *item, bool back) {
    const int size = e->axis->size;
    const struct matrix_shape shape = deal_shape(r->table, item->row);
    real *all = r->whole, *scratch = r->scratch;
    for (int i = item->row; i < item->row + shape.tensors; i++) {
        const struct row *row = &r->table->row[i];
        for (int peer = 0; peer < size; peer++) {
            const struct place p = place_of(row, size, peer);
            real *part = shape.split ? all + p.first * p.columns : r->x + row->offset;
            long count = shape.split ? p.count : row->count;
            if (peer == e->axis->index) continue;
            if (shape.split && !p.by_rows) part = scratch, scratch += p.count;
            if (back) TRY(exchange_send(e, part, count, peer));
            if (!back && shape.split) TRY(exchange_receive(e, part, count, peer));
        }
        all += elements(row);
    }
    return 0;
}

/* All others: the own part. */
static int exchange_part(const struct rounds *r, struct exchange *e, const struct dealt *item, bool back) {
    const struct matrix_shape shape = deal_shape(r->table, item->row);
    for (int i = item->row; i < item->row + shape.tensors; i++) {
        const struct row *row = &r->table->row[i];
        if (back) TRY(exchange_receive(e, r->x + row->offset, row->count, item->tensor));
        if (!back && shape.split) TRY(exchange_send(e, r->x + row->offset, row->count, item->tensor));
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- a round */

static const struct dealt *in_turn(const struct rounds *r, int tensor) {
    int i = r->deal->turn[tensor];
    return i < r->deal->count ? &r->deal->item[i] : NULL;
}

static int exchange_all(const struct rounds *r, struct exchange *e, bool back) {
    int messages = 0;
    for (int t = 0; t < e->axis->size; t++)
        if (in_turn(r, t)) messages += deal_shape(r->table, in_turn(r, t)->row).tensors * e->axis->size;
    TRY(exchange_begin(e, messages, back ? "return of matrices" : "gather of matrices"));
    for (int t = 0; t < e->axis->size; t++) {
        const struct dealt *item = in_turn(r, t);
        if (item && t == e->axis->index) TRY(exchange_own(r, e, item, back));
        if (item && t != e->axis->index) TRY(exchange_part(r, e, item, back));
    }
    return exchange_end(e);
}

static int round_of(const struct rounds *r, bool back) {
    struct exchange e = {.axis = &r->mesh->axis[AXIS_TENSOR]};
    const struct dealt *own = in_turn(r, e.axis->index);
    if (own && back) arrange(r, own, back);
    int status = exchange_all(r, &e, back);
    if (!status && own && !back) arrange(r, own, back);
    exchange_free(&e);
    return status;
}

int rounds_collect(const struct rounds *rounds) {
    return round_of(rounds, false);
}

int rounds_hand_back(const struct rounds *rounds) {
    return round_of(rounds, true);
}

int64_t rounds_formula(const struct table *table, const struct dealt *item, const struct deal_ranks *ranks) {
    const struct matrix_shape shape = deal_shape(table, item->row);
    int64_t count = 0;
    if (item->tensor == ALL_TENSOR_RANKS) return 0;
    for (int i = item->row; i < item->row + shape.tensors; i++) {
        const struct row *row = &table->row[i];
        if (item->tensor != ranks->tensor_index)
            count += shape.split ? row->count : 0;
        else
            count += shape.split ? elements(row) - row->count : (ranks->tensor - 1) * row->count;
    }
    return count * (int64_t)sizeof(real);
}
