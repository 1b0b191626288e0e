/* What a rank computes of sequences: rows, which are whole sequences or with several context ranks pieces of them
 * (dist/layout/pieces.h). */
#ifndef GDN_CONFIG_ROWS_H
#define GDN_CONFIG_ROWS_H

#include "dist/layout/pieces.h"
#include "train/config/config.h"

/* Its rows of so many sequences. */
static inline long config_rows(const struct config *config, long sequences) {
    return sequences * pieces_each(config->mesh.size[AXIS_CONTEXT]);
}

/* Tokens of a row. */
static inline long config_row_length(const struct config *config) {
    return pieces_length(config->mesh.size[AXIS_CONTEXT], config->train.sequence_length);
}

#endif
