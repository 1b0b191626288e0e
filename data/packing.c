#include "data/packing.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/marks.h"
#include "kernels/base/status.h"

enum { BLOCK = 1 << 14, WORD = 64 };

static int add_piece(struct packing *p, long *room, long first, long length) {
    if (p->pieces == *room) {
        *room = 2 * *room + 1024;
        struct piece *grown = realloc(p->piece, (size_t)*room * sizeof *grown);
        if (!grown) return gdn_fail(GDN_INTERNAL, "no memory for packing %ld documents", *room);
        p->piece = grown;
    }
    p->piece[p->pieces++] = (struct piece){first, length, -1};
    return GDN_OK;
}

/* One document [first, end). */
static int add_document(struct packing *p, long *room, long first, long end, long length) {
    for (; first < end; first += length)
        TRY(add_piece(p, room, first, end - first < length ? end - first : length));
    return GDN_OK;
}

static int find_pieces(struct tokens *tokens, long from, long to, long length, struct packing *p) {
    int32_t row[BLOCK];
    long room = 0, open = from;
    for (long at = from, n; at < to; at += n) {
        n = to - at < BLOCK ? to - at : BLOCK;
        TRY(tokens_read(tokens, at, n, row));
        for (long i = 0; i < n; i++) row[i] &= MARK_TOKEN;
        TRY(tokens_mark_documents(tokens, at, n, row));
        for (long i = 0; i < n; i++) {
            if (!(row[i] & MARK_DOCUMENT) || at + i == open) continue;
            TRY(add_document(p, &room, open, at + i, length));
            open = at + i;
        }
    }
    return add_document(p, &room, open, to, length);
}

/* Samples by how much room they have left: of each room a stack. */
struct rooms {
    uint64_t *there; /* [length/64 + 1] bit r: some sample has room for r */
    long *top;       /* [length + 1] −1: none */
    long *below;     /* [samples] the next of the same room */
};

static void push(struct rooms *rooms, long room, long sample) {
    rooms->below[sample] = rooms->top[room];
    rooms->top[room] = sample;
    rooms->there[room / WORD] |= 1ull << room % WORD;
}

/* A sample with the least room that is enough; −1: none has. */
static long pop(struct rooms *rooms, long length, long wanted, long *room) {
    uint64_t word = rooms->there[wanted / WORD] >> wanted % WORD << wanted % WORD;
    long w = wanted / WORD;
    while (!word && ++w <= length / WORD) word = rooms->there[w];
    if (!word) return -1;
    *room = w * WORD + __builtin_ctzll(word);
    long sample = rooms->top[*room];
    rooms->top[*room] = rooms->below[sample];
    if (rooms->top[*room] < 0) rooms->there[*room / WORD] &= ~(1ull << *room % WORD);
    return sample;
}

/* order [pieces]: from the longest to the shortest, those of a length as in the stream. counts [length + 2]:
 * zeros. */
static void sort(const struct packing *p, long length, long *counts, long *order) {
    for (long i = 0; i < p->pieces; i++) counts[length - p->piece[i].length + 1]++;
    for (long i = 0; i < length; i++) counts[i + 1] += counts[i];
    for (long i = 0; i < p->pieces; i++) order[counts[length - p->piece[i].length]++] = i;
}

/* of [pieces]: the sample of each, numbered as they were opened. */
static void fit(struct packing *p, long length, const long *order, struct rooms *rooms, long *of) {
    for (long i = 0; i < p->pieces; i++) {
        long room = length, wanted = p->piece[order[i]].length, sample = pop(rooms, length, wanted, &room);
        if (sample < 0) sample = p->samples++;
        of[order[i]] = sample;
        if (room > wanted) push(rooms, room - wanted, sample);
    }
}

/* Numbers samples by their first pieces and joins the pieces of each; number, last [samples]. */
static void join(struct packing *p, const long *of, long *number, long *last) {
    memset(number, -1, (size_t)p->samples * sizeof *number);
    long numbered = 0;
    for (long i = 0; i < p->pieces; i++) {
        long *n = &number[of[i]];
        if (*n < 0)
            p->sample[ *n = numbered++] = i;
        else
            p->piece[last[*n]].next = i;
        last[*n] = i;
    }
}

static int pack(struct packing *p, long length) {
    size_t n = (size_t)p->pieces, lengths = (size_t)length + 2;
    long *order = malloc(n * sizeof *order), *of = malloc(n * sizeof *of),
         *counts = calloc(lengths, sizeof *counts);
    struct rooms rooms = {calloc(lengths / WORD + 1, sizeof *rooms.there),
                          malloc(lengths * sizeof *rooms.top), malloc(n * sizeof *rooms.below)};
    p->sample = malloc(n * sizeof *p->sample);
    bool there = order && of && counts && rooms.there && rooms.top && rooms.below && p->sample;
    if (there) {
        memset(rooms.top, -1, lengths * sizeof *rooms.top);
        sort(p, length, counts, order);
        fit(p, length, order, &rooms, of);
        join(p, of, order, rooms.below); /* neither of which is needed any more */
    }
    free(order), free(of), free(counts);
    free(rooms.there), free(rooms.top), free(rooms.below);
    return there ? GDN_OK : gdn_fail(GDN_INTERNAL, "no memory for packing %ld documents", p->pieces);
}

int packing_create(struct tokens *tokens, long from, long to, long length, struct packing *out) {
    *out = (struct packing){0};
    TRY(find_pieces(tokens, from, to, length, out));
    return pack(out, length);
}

void packing_free(struct packing *packing) {
    free(packing->piece);
    free(packing->sample);
    *packing = (struct packing){0};
}
