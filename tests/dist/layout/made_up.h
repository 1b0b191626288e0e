/* Made-up parameter tables of any mesh's ranks: tensors of all zones and lengths, partial and shared ones. */
#ifndef GDN_TEST_MADE_UP_H
#define GDN_TEST_MADE_UP_H

#include "dist/layout/table.h"

struct made_up {
    int data, tensor, tensor_index, pipeline, pipeline_index;
};

/* The table of one rank. Tensors' lengths are drawn; those that are not partial differ between tensor ranks,
 * so that their tables differ in length. made_up_free. */
struct table made_up_table(struct made_up rank);
void made_up_free(struct table *table);

#endif
