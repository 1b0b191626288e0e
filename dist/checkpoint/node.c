#include "dist/checkpoint/node.h"
#include "data/hdf5/h5.h"
#include "dist/mpi/mpi_error.h"
#include "dist/mpi/polling.h"
#include "dist/checkpoint/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "part_00003.h5" beside checkpoint.h5; free(). */
static char *part_path(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    char *out;
    int folder = slash ? (int)(slash - path) + 1 : 0;
    return asprintf(&out, "%.*s%s", folder, path, name) < 0 ? NULL : out;
}

static void part_name(int node, char name[FILE_PART_NAME]) {
    snprintf(name, FILE_PART_NAME, "part_%05d.h5", node);
}

char *checkpoint_part(const char *path, int node) {
    char name[FILE_PART_NAME];
    part_name(node, name);
    return part_path(path, name);
}

/* ------------------------------------------------------------------------------------------- nodes */

static int split(const struct mesh *mesh, int color, struct file_group *out) {
    out->comm = mesh->node;
    if (out->comm == MPI_COMM_NULL) MPI_TRY(MPI_Comm_split(mesh->world, color, mesh->rank, &out->comm));
    MPI_TRY(MPI_Comm_rank(out->comm, &out->rank));
    MPI_TRY(MPI_Comm_size(out->comm, &out->size));
    return 0;
}

int node_create(const struct mesh *mesh, struct node *out) {
    int first;
    *out = (struct node){.group = file_group_all(mesh), .count = mesh->size == 1};
    if (mesh->size == 1) return 0;
    TRY(mesh_hosts(mesh, &first, &out->index, &out->count));
    return split(mesh, first, &out->group);
}

void node_free(struct node *node) {
    if (node->group.mesh->size > 1 && node->group.mesh->node == MPI_COMM_NULL)
        MPI_Comm_free(&node->group.comm);
}

/* ------------------------------------------------------------------------------------------ writing */

/* All pieces of a node, on its first rank. */
struct pieces {
    struct file_piece *piece;
    int count, first; /* of all; the first of this rank, on every rank */
};

/* Collects the node's parts on its first rank. */
static int collect(const struct node *node, const struct parts *parts, struct pieces *out) {
    struct file_piece *mine =
        file_group_allocate(&node->group, (size_t)parts->count * sizeof *mine, "the parts of a checkpoint");
    if (!mine) return GDN_INTERNAL;
    for (int i = 0; i < parts->count; i++) {
        const struct rectangle *where = &parts->part[i].where;
        mine[i] = (struct file_piece){.dataset = parts->part[i].dataset,
                                      .node = node->index,
                                      .at = {where->at[0], where->at[1]},
                                      .size = {where->size[0], where->size[1]}};
    }
    long bytes, first;
    int status = file_group_gather(&node->group, mine, parts->count * (long)sizeof *mine,
                                   (void **)&out->piece, &bytes, &first);
    free(mine);
    out->count = (int)(bytes / (long)sizeof *mine), out->first = (int)(first / (long)sizeof *mine);
    if (node->group.rank == 0)
        for (int i = 0; i < out->count; i++) out->piece[i].index = i;
    return status;
}

/* "model/layers/…/weight/7", in the node's file. */
static void piece_name(const struct parts *parts, const struct file_piece *piece, char name[FILE_NAME]) {
    char dataset[ROWS_NAME];
    parts_name(parts, piece->dataset, dataset);
    snprintf(name, FILE_NAME, "%s/%d", dataset, piece->index);
}

static int make_file(const char *path, const struct parts *parts, const struct pieces *pieces, int64_t bytes,
                     int64_t *offset) {
    struct file_dataset *dataset = malloc((size_t)(pieces->count + 1) * sizeof *dataset);
    if (!dataset) return gdn_fail(GDN_INTERNAL, "out of memory for the parts of a checkpoint");
    for (int i = 0; i < pieces->count; i++) {
        const struct file_piece *piece = &pieces->piece[i];
        dataset[i] = (struct file_dataset){.ndim = parts_row(parts, piece->dataset)->ndim,
                                           .shape = {piece->size[0], piece->size[1]}};
        piece_name(parts, piece, dataset[i].name);
    }
    struct file_plan plan = {.datasets = pieces->count, .dataset = dataset, .bytes = bytes};
    int status = file_make(path, &plan, offset);
    free(dataset);
    return status;
}

/* What the node's file will need at most. */
static int64_t bytes_of(const struct pieces *pieces) {
    int64_t bytes = FILE_OVERHEAD;
    for (int i = 0; i < pieces->count; i++)
        bytes += pieces->piece[i].size[0] * pieces->piece[i].size[1] * (int64_t)sizeof(real) + FILE_METADATA;
    return bytes;
}

/* The phases of one node's file, in step with those of the others. */
static int write_file(const struct node *node, const char *path, const struct parts *parts,
                      const struct pieces *pieces, int64_t *offset, char hash[DIGEST_HASH]) {
    const struct file_group *group = &node->group;
    int64_t bytes = group->rank == 0 ? bytes_of(pieces) : 0;
    TRY(file_group_broadcast(group, &bytes, sizeof bytes));
    TRY(file_group_agree(group, file_verify_limit(path, bytes)));
    TRY(file_group_agree(group, group->rank == 0 ? make_file(path, parts, pieces, bytes, offset) : 0));
    TRY(file_group_broadcast(group, offset, pieces->count * (long)sizeof *offset));
    TRY(file_group_agree(group, file_fill(path, parts, &(struct file_places){offset + pieces->first, true})));
    return digest_write(group, path, hash);
}

static int by_dataset(const void *a, const void *b) {
    const struct file_piece *x = a, *y = b;
    return (x->dataset > y->dataset) - (x->dataset < y->dataset);
}

/* Gives rank 0 what it needs to join the files. */
static int join(const struct node *node, const struct pieces *pieces, const char *hash, struct joint *out) {
    struct file_group all = file_group_all(node->group.mesh);
    char name[FILE_PART_NAME], line[FILE_PART_NAME + DIGEST_HASH + 2] = "";
    bool first = node->group.rank == 0;
    long bytes, unused;
    part_name(node->index, name);
    if (first) snprintf(line, sizeof line, "%s %s\n", name, hash);
    TRY(file_group_gather(&all, line, (long)strlen(line), (void **)&out->digests, &bytes, &unused));
    long mine = first ? pieces->count * (long)sizeof *pieces->piece : 0;
    TRY(file_group_gather(&all, pieces->piece, mine, (void **)&out->piece, &bytes, &unused));
    out->pieces = (int)(bytes / (long)sizeof *out->piece);
    if (all.rank == 0 && out->pieces) qsort(out->piece, (size_t)out->pieces, sizeof *out->piece, by_dataset);
    return 0;
}

int node_write(const struct node *node, const char *path, const struct parts *parts, struct joint *out) {
    struct pieces pieces = {0};
    char name[FILE_PART_NAME], hash[DIGEST_HASH] = "";
    *out = (struct joint){0};
    part_name(node->index, name);
    char *own = part_path(path, name);
    int status = file_group_agree(&node->group, own ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a path"));
    if (!status) status = collect(node, parts, &pieces);
    int64_t *offset = NULL;
    if (!status) {
        offset = file_group_allocate(&node->group, (size_t)pieces.count * sizeof *offset,
                                     "the parts of a checkpoint");
        status = offset ? write_file(node, own, parts, &pieces, offset, hash) : GDN_INTERNAL;
    }
    if (!status) status = join(node, &pieces, hash, out);
    free(offset);
    free(pieces.piece);
    free(own);
    return status;
}

void joint_free(struct joint *joint) {
    free(joint->piece);
    free(joint->digests);
    *joint = (struct joint){0};
}

/* ------------------------------------------------------------------------------------------ checking */

/* The recorded digests of a checkpoint.h5, NULL where it joins nothing; free(). */
static int read_digests(const char *path, char **digests) {
    hid_t file;
    bool there;
    *digests = NULL;
    TRY(h5_open(path, &file));
    int status = h5_has_attribute(file, path, FILE_PARTS, &there);
    if (!status && there) status = h5_read_text(file, path, FILE_PARTS, digests);
    h5_close(file);
    return status;
}

/* Verifies one file against its line of the record. */
static int verify_part(const struct file_group *group, const char *path, const char *line) {
    char name[FILE_PART_NAME], right[DIGEST_HASH], found[DIGEST_HASH] = "";
    bool has_digest;
    if (sscanf(line, "%15s %32s", name, right) != 2 || strchr(name, '/'))
        return gdn_fail(GDN_INPUT, "%s names the files that it joins in a way that is unknown", path);
    char *part = part_path(path, name);
    int status = file_group_agree(group, part ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a path"));
    if (!status)
        status = gdn_fail_in(digest_verify(group, part, &has_digest, found), "%s joins other files", path);
    if (!status && (!has_digest || strcmp(found, right)))
        status =
            gdn_fail(GDN_INPUT, "%s is damaged: %s is not the file that it was written with", path, part);
    free(part);
    return status;
}

int node_verify(const struct file_group *group, const char *path) {
    char *digests = NULL;
    int status = file_group_agree(group, read_digests(path, &digests));
    for (const char *line = digests; !status && line && *line;) {
        status = verify_part(group, path, line);
        line = strchrnul(line, '\n');
        if (*line) line++;
    }
    free(digests);
    return status;
}
