/* Sequences that are cut over c context ranks: 2c pieces of the same length, of which rank r has pieces r and
 * 2c − 1 − r. So each has as many pairs of a query and a key that it sees: those of 2c + 1 pieces, less what a
 * piece lacks that sees half of itself. To passes a piece is a row of its own, with its targets behind its
 * inputs: of sequence s a rank has rows 2s and 2s + 1, in this order. With one rank a row is a sequence. */
#ifndef GDN_PIECES_H
#define GDN_PIECES_H

#include <stdint.h>
#include <string.h>

/* Rows that a rank has of each sequence. */
static inline int pieces_each(int context) {
    return context > 1 ? 2 : 1;
}

/* Tokens of a row, of sequences of `length`. */
static inline long pieces_length(int context, long length) {
    return length / (context * pieces_each(context));
}

/* Which of its sequence's pieces a rank's row is; and where a piece is: the rank, and the row of its two. */
static inline int piece_of_row(int context, int rank, long row) {
    return row % 2 ? 2 * context - 1 - rank : rank;
}
static inline int piece_rank(int context, int piece) {
    return piece < context ? piece : 2 * context - 1 - piece;
}
static inline int piece_row(int context, int piece) {
    return piece >= context;
}

/* Cuts a rank's rows [2 · sequences, length / 2c + 1] out of sequences [sequences, length + 1]. */
static inline void pieces_cut(int context, int rank, long sequences, long length, const int32_t *from,
                              int32_t *rows) {
    const long each = pieces_length(context, length);
    for (long row = 0; row < 2 * sequences; row++)
        memcpy(rows + row * (each + 1),
               from + row / 2 * (length + 1) + piece_of_row(context, rank, row) * each,
               (size_t)(each + 1) * sizeof *rows);
}

#endif
