/* From factors back to the difference. */
#ifndef GDN_DELTA_REBUILD_H
#define GDN_DELTA_REBUILD_H

#include "train/deltas/file.h"

/* Keeps the first `rank` columns of U and rows of Vt, in place: the factors of a lower rank, with the error
 * that these have. 1 ≤ rank ≤ factors->rank. */
void delta_cut(struct factors *factors, long rank);

/* Writes δ ≈ U diag(sigma) Vt as dataset `delta` [batch, length, hidden] of a new HDF5 file, with where it is
 * from as its attributes; `from` is the file of the record, of which `stored_rank` is the rank. The file is
 * complete or not there; one that is there is replaced. The same bits as lowrank_expand. GDN_INPUT where it
 * cannot be written. */
int delta_rebuild(const struct delta_record *record, long stored_rank, const char *from, const char *path);

#endif
