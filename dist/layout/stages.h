/* Cutting the layers into pipeline stages. */
#ifndef GDN_STAGES_H
#define GDN_STAGES_H

#include "dist/layout/layout.h"

/* Cuts `layers` layers with arithmetic cost[l] > 0 each into `stages` consecutive spans of at least one
 * layer; `first` and `last` are added to the first and last stage (embedding, head). The greatest sum of a
 * stage is least; among the cuts of which that is true the sum of the stages' squares is least; and of
 * equals, the one whose earlier stages are shorter is taken (they keep more micro-batches in memory). out
 * [stages] is the caller's. GDN_INPUT where there are fewer layers than stages (the message names
 * model.num_layers, mesh.pipeline and mesh.interleave). */
int stages_cut(int layers, const double *cost, double first, double last, int stages, struct span *out);

#endif
