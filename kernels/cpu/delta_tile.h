/* Values that hold for a whole group of columns (a gate of a channel group, a factor of a connection) in
 * loops over all columns of a row: groups are often only 8 or 32 wide, too short for a loop each. A row is
 * cut into tiles that fit a buffer on the stack; a tile holds whole groups, or a part of one that is wider
 * than a tile. */
#ifndef GDN_DELTA_TILE_H
#define GDN_DELTA_TILE_H

#include "kernels/base/real.h"

enum { TILE = 512, TILE_STEP = 8 };

struct tile {
    long first, columns; /* columns of the row it holds, at most TILE */
    long group, groups;  /* first group it touches and how many; at most TILE */
};

/* The tile that starts at column `first` of a row of `width` columns in groups of `group`. */
static inline struct tile tile_at(long first, long width, long group) {
    long max = group < TILE ? TILE / group * group : group - first % group;
    if (max > TILE) max = TILE;
    long columns = width - first < max ? width - first : max;
    return (struct tile){first, columns, first / group, group < TILE ? columns / group : 1};
}

/* Eight columns at once; spelt out, since compilers make poor code of loops as short as a group. */
typedef real lanes __attribute__((vector_size(TILE_STEP * sizeof(real)), aligned(sizeof(real)), may_alias));

/* out [columns]: value [groups] of each column's group. */
static inline void tile_spread(const struct tile *tile, const real *restrict value, real *restrict out) {
    long width = tile->columns / tile->groups;
    for (long g = 0; g < tile->groups; g++, out += width) {
        lanes all = value[g] - (lanes){0};
        long j = 0;
        for (; j + TILE_STEP <= width; j += TILE_STEP) *(lanes *)(out + j) = all;
        for (; j < width; j++) out[j] = value[g];
    }
}

/* sum [groups] of x [columns] over each group. */
static inline void tile_sums(const struct tile *tile, const real *restrict x, real *restrict sum) {
    long width = tile->columns / tile->groups;
    for (long g = 0; g < tile->groups; g++, x += width) {
        lanes l = {0};
        real rest = 0;
        long j = 0;
        for (; j + TILE_STEP <= width; j += TILE_STEP) l += *(const lanes *)(x + j);
        for (; j < width; j++) rest += x[j];
        sum[g] = rest + (((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7])));
    }
}

#endif
