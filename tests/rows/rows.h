/* Rows that tests add to the tables of gdn, one file each; a function registers its row. None is part of gdn:
 * each proves that its table takes a row without another file being touched. */
#ifndef GDN_TEST_ROWS_H
#define GDN_TEST_ROWS_H

#include "dist/layout/axes.h"
#include "model/params/config.h"

/* All of the functions below, before anything else of the program. */
void rows_register(void);

void rows_of_optimizers(void); /* optimizers.c */
/* axes.c: an axis `replica` of $GDN_TEST_REPLICA ranks, of all configurations; none where that is unset. */
void rows_of_axes(void);
void choose_axes(int size[AXES]);
/* mixer_average.c, which layers whose character in $GDN_TEST_MIXERS is 1 have ("01": every second); of a
 * configuration that the program does not read: after rows_of_mixers. */
void rows_of_mixers(void);
void choose_mixers(struct model_config *model);
/* rules.c: rules for the letters of $GDN_TEST_RULES, in order, of a configuration that the program does not
 * read, which has model.rules: after rows_of_rules. rule_constant.c enters before layers for a b, after them
 * for an a; rule_heads.c queries for a q, keys for a k, values for a v; gdn's own kinds have letters too. */
int register_rule_constant(void);
int register_rule_heads(void);
void rows_of_rules(void);
void choose_rules(struct model_config *model);
/* gate_identity.c, of configurations whose model.delta.kind is identity; of others that the program does not
 * read where $GDN_TEST_GATE is set: after rows_of_gates. */
void rows_of_gates(void);
void choose_gate(struct model_config *model);
/* aggregates.c: aggregate_scored.c, which computes shares of contributions, and aggregate_mapped.c, which
 * combines them, of configurations whose model.delta.aggregate is scored or mapped; of others that the
 * program does not read where $GDN_TEST_AGGREGATE is: after rows_of_aggregates. */
int register_aggregate_scored(void);
int register_aggregate_mapped(void);
void rows_of_aggregates(void);
void choose_aggregate(struct model_config *model);
/* edges.c, of all configurations: with $GDN_TEST_EDGES some, sets of active edges are not the first ones of a
 * layer, and some edges never are; with only, edge tables have no others than those that are at last. */
void rows_of_edges(void);
void choose_edges(const char *how); /* the same: some, only, or as gdn does for an empty text */
void rows_of_formats(void);         /* format_big_endian.c, of data.format bigendian */

#endif
