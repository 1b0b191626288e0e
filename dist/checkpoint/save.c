/* Saving: complete or invisible. Everything is written and synced under names that begin with a dot, read
 * back and verified, and then becomes visible by renames alone, which need no space; a rename that fails
 * takes back those before. */
#include "dist/checkpoint/node.h"
#include "dist/checkpoint/intact.h"
#include "data/hdf5/sum.h"
#include "dist/checkpoint/folder.h"
#include "dist/checkpoint/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct save {
    char *path; /* of the folder `checkpoints` */
    char *file; /* of the checkpoint.h5 that is being prepared */
    const struct checkpoint_content *content;
    int64_t step;
    enum checkpoint_files files;
    char name[FOLDER_NAME], prepared[FOLDER_NAME];
    bool best;

    /* Rank 0's. */
    int folder; /* open; −1: not */
    bool made;  /* the folder is new */
};

static int failed(const struct save *save, int error) {
    return gdn_fail(GDN_INTERNAL, "checkpoint %s/%s cannot be saved: %s", save->path, save->name,
                    strerror(error));
}

static int sync_directory(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = fsync(fd) ? errno : 0;
    close(fd);
    return error;
}

/* ------------------------------------------------------------------------------------------- the file */

/* What is known of a model's content before it is written, the same on all ranks. */
struct summary {
    uint64_t *sum;   /* [datasets] checksums */
    uint64_t *count; /* [datasets] elements that are somebody's part */
    int64_t *steps;  /* [rows] */
    int64_t *offset; /* [datasets] places in the file */
    struct file_dataset *dataset;
};

struct summing {
    const struct parts *parts;
    struct summary *summary;
};

static int sum_block(void *context, const struct part *part, long first, long n, const real *buffer) {
    const struct summing *s = context;
    const struct rectangle *where = &part->where;
    long width = parts_row(s->parts, part->dataset)->shape[1], lines = n, length = where->size[1];
    if (length == width) length *= lines, lines = 1;
    for (long r = 0; r < lines; r++)
        s->summary->sum[part->dataset] +=
            sum_elements(buffer + r * length, sizeof(real), length,
                         (uint64_t)((where->at[0] + first + r) * width + where->at[1]), 1);
    return 0;
}

/* Whether the ranks' parts make up the model. */
static int verify_cover(const struct parts *parts, const struct summary *s) {
    for (int i = 0; i < parts->datasets; i++) {
        const struct row *row = parts_row(parts, i);
        uint64_t right = (uint64_t)(row->shape[0] * row->shape[1]);
        if (s->count[i] != right)
            return gdn_fail(GDN_INTERNAL,
                            "the ranks together have %" PRIu64 " elements to save of tensor %s, not %" PRIu64,
                            s->count[i], row->name, right);
    }
    for (int i = 0; i < parts->rows && parts->moments; i++)
        if (s->steps[i] == INT64_MIN)
            return gdn_fail(GDN_INTERNAL, "no rank has the steps of tensor %s", parts->global->row[i].name);
    return 0;
}

static int summarize(const struct file_group *group, const struct checkpoint_content *content,
                     const struct parts *parts, struct summary *s) {
    for (int i = 0; i < parts->rows; i++) s->steps[i] = INT64_MIN;
    for (int i = 0; i < content->table->rows && parts->moments; i++)
        s->steps[parts->row[i]] = content->state->steps[i];
    for (int i = 0; i < parts->count; i++)
        s->count[parts->part[i].dataset] +=
            (uint64_t)(parts->part[i].where.size[0] * parts->part[i].where.size[1]);
    if (content->sums)
        memcpy(s->sum, content->sums, (size_t)parts->datasets * sizeof *s->sum);
    else
        TRY(file_group_agree(group, parts_each(parts, sum_block, &(struct summing){parts, s})));
    TRY(file_group_sum(group, s->sum, parts->datasets));
    TRY(file_group_sum(group, s->count, parts->datasets));
    TRY(file_group_max(group, s->steps, parts->rows));
    return file_group_agree(group, verify_cover(parts, s));
}

/* What checkpoint.h5 will need at most, with or without the elements. */
static int64_t file_bytes(const struct save *save, const struct parts *parts,
                          const struct checkpoint_info *info, const struct joint *joint) {
    int64_t bytes = FILE_OVERHEAD + file_text_bytes(info) +
                    save->content->num_scales * (int64_t)sizeof *save->content->scales +
                    save->content->spike_values * (int64_t)sizeof *save->content->spikes;
    bytes += (parts->datasets + parts->rows) * (int64_t)FILE_METADATA; /* rows: their steps */
    if (joint) return bytes + (joint->pieces + 1) * (int64_t)FILE_METADATA;
    for (int i = 0; i < parts->datasets; i++) {
        const struct row *row = parts_row(parts, i);
        bytes += row->shape[0] * row->shape[1] * (int64_t)sizeof(real);
    }
    return bytes;
}

/* Rank 0: makes checkpoint.h5; `joint`: from other files. */
static int make_file(const struct save *save, const struct parts *parts, const struct checkpoint_info *info,
                     const struct joint *joint, struct summary *s) {
    struct file_plan plan = {.datasets = parts->datasets,
                             .dataset = s->dataset,
                             .global = parts->global,
                             .steps = parts->moments ? s->steps : NULL,
                             .scales = save->content->scales,
                             .num_scales = save->content->num_scales,
                             .spikes = save->content->spikes,
                             .spike_values = save->content->spike_values,
                             .info = info,
                             .bytes = file_bytes(save, parts, info, joint)};
    if (joint) plan.pieces = joint->pieces, plan.piece = joint->piece, plan.digests = joint->digests;
    for (int i = 0; i < parts->datasets; i++) {
        const struct row *row = parts_row(parts, i);
        s->dataset[i] = (struct file_dataset){
            .ndim = row->ndim, .shape = {row->shape[0], row->shape[1]}, .has_sum = true, .sum = s->sum[i]};
        parts_name(parts, i, s->dataset[i].name);
    }
    return file_make(save->file, &plan, s->offset);
}

/* Everything in one file. */
static int write_one(const struct file_group *group, const struct save *save,
                     const struct checkpoint_info *info, const struct parts *parts, struct summary *s) {
    TRY(file_group_agree(group, file_verify_limit(save->file, file_bytes(save, parts, info, NULL))));
    TRY(file_group_agree(group, group->rank == 0 ? make_file(save, parts, info, NULL, s) : 0));
    TRY(file_group_broadcast(group, s->offset, parts->datasets * (long)sizeof *s->offset));
    return file_group_agree(group, file_fill(save->file, parts, &(struct file_places){s->offset, false}));
}

/* A file for each node, joined by checkpoint.h5. */
static int write_nodes(const struct file_group *group, const struct save *save,
                       const struct checkpoint_info *info, const struct parts *parts, struct summary *s) {
    struct node node;
    struct joint joint;
    TRY(node_create(group->mesh, &node));
    int status = node_write(&node, save->file, parts, &joint);
    if (!status)
        status = file_group_agree(group, group->rank == 0 ? make_file(save, parts, info, &joint, s) : 0);
    joint_free(&joint);
    node_free(&node);
    return status;
}

/* The phases of writing, after each of which the ranks agree. */
static int write_phases(const struct file_group *group, const struct save *save,
                        const struct checkpoint_content *content, const struct checkpoint_info *info,
                        const struct parts *parts, struct summary *s) {
    char hash[DIGEST_HASH];
    struct file_size size;
    int error = 0;
    TRY(summarize(group, content, parts, s));
    if (group->rank == 0 && mkdirat(save->folder, save->prepared, 0777)) error = errno;
    TRY(file_group_agree(group, error ? failed(save, error) : 0));
    TRY((save->files == FILES_NODE ? write_nodes : write_one)(group, save, info, parts, s));
    TRY(digest_write(group, save->file, hash));
    return file_verify_datasets(group, save->file, &size) ? GDN_INTERNAL : 0;
}

static int write_file(const struct file_group *group, const struct save *save,
                      const struct checkpoint_content *content, const struct checkpoint_info *info) {
    struct parts parts;
    int status = file_group_agree(group, parts_create(group->mesh, content, PARTS_WRITTEN, &parts));
    if (!status) {
        static const char what[] = "the summary of a checkpoint";
        size_t datasets = (size_t)parts.datasets;
        struct summary s = {.sum = file_group_allocate(group, datasets * sizeof *s.sum, what)};
        if (s.sum) s.count = file_group_allocate(group, datasets * sizeof *s.count, what);
        if (s.count) s.steps = file_group_allocate(group, (size_t)parts.rows * sizeof *s.steps, what);
        if (s.steps) s.offset = file_group_allocate(group, datasets * sizeof *s.offset, what);
        if (s.offset)
            s.dataset = file_group_allocate(group, group->rank ? 1 : datasets * sizeof *s.dataset, what);
        status = s.dataset ? write_phases(group, save, content, info, &parts, &s) : GDN_INTERNAL;
        free(s.sum);
        free(s.count);
        free(s.steps);
        free(s.offset);
        free(s.dataset);
    }
    parts_free(&parts);
    return status;
}

/* --------------------------------------------------------------------------------------- rank 0's folder */

/* Marks and syncs what was prepared, and prepares the pointers. */
static int prepare_pointers(const struct save *save) {
    int error = folder_mark(save->folder, save->prepared, "latest");
    bool best = save->best || folder_pointer(save->folder, "best", NULL) == save->step; /* it replaces that */
    if (!error && best) error = folder_mark(save->folder, save->prepared, "best");
    if (!error) error = sync_directory(save->folder, save->prepared);
    if (!error) error = folder_prepare_pointer(save->folder, "latest", save->step);
    if (!error && save->best) error = folder_prepare_pointer(save->folder, "best", save->step);
    return error ? failed(save, error) : 0;
}

/* Makes the checkpoint, `latest` and `best` visible, or nothing. */
static int publish(const struct save *save) {
    TRY(prepare_pointers(save));
    /* `best` before `latest`: killed in between, the run goes on from an older one and comes here again. */
    const char *names[] = {save->name, save->best ? "best" : "latest", "latest"};
    bool replaced[3];
    int count = save->best ? 3 : 2, done = 0, error = 0;
    for (; done < count && !error; done += !error)
        error = folder_publish(save->folder, names[done], &replaced[done]);
    if (!error && fsync(save->folder)) error = errno;
    if (!error) {
        folder_unmark(save->folder, "latest", save->step);
        if (save->best) folder_unmark(save->folder, "best", save->step);
        return 0;
    }
    while (done-- > 0) folder_take_back(save->folder, names[done], replaced[done]);
    return failed(save, error);
}

/* Keeps what `keep` says and what `latest` and `best` name. One that cannot be removed is no reason to
 * stop a training whose checkpoint is safe: the next save tries again. */
static void prune(const struct save *save, const struct checkpoint_keep *keep) {
    int64_t *steps, latest = folder_pointer(save->folder, "latest", NULL),
                    best = folder_pointer(save->folder, "best", NULL);
    int count, intact = 0;
    if (keep->newest <= 0 || folder_list(save->folder, &steps, &count)) return;
    for (int i = 0; i < count; i++) {
        bool named = steps[i] == latest || steps[i] == best;
        if (intact < keep->newest)
            intact += checkpoint_is_intact(save->path, steps[i]);
        else if (!named && !(keep->every > 0 && steps[i] % keep->every == 0))
            folder_remove_step(save->folder, steps[i]);
    }
    free(steps);
}

/* Opens the folder, making it where it is not there. */
static int open_folder(const char *directory, struct save *save) {
    save->made = !mkdir(save->path, 0777);
    if (!save->made && errno != EEXIST)
        return gdn_fail(GDN_INTERNAL, "%s cannot be made: %s", save->path, strerror(errno));
    save->folder = open(save->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (save->folder < 0)
        return gdn_fail(GDN_INTERNAL, "%s cannot be opened: %s", save->path, strerror(errno));
    int error = save->made ? sync_directory(AT_FDCWD, directory) : 0;
    if (error) return gdn_fail(GDN_INTERNAL, "%s cannot be synced: %s", directory, strerror(error));
    folder_clean_up(save->folder);
    return 0;
}

/* Takes away what failed, or what was replaced. */
static void close_folder(struct save *save, int status) {
    if (save->folder >= 0) {
        folder_clean_up(save->folder);
        close(save->folder);
    }
    if (status && save->made) rmdir(save->path);
}

static int save_on(const struct file_group *group, const char *directory,
                   const struct checkpoint_content *content, const struct checkpoint_info *info,
                   const struct checkpoint_keep *keep, struct save *save) {
    bool first = group->rank == 0;
    int status = file_group_agree(group, first ? open_folder(directory, save) : 0);
    if (!status) status = write_file(group, save, content, info);
    if (!status) status = file_group_agree(group, first ? publish(save) : 0);
    if (first && !status) checkpoint_note_intact(save->path, save->step);
    if (first && !status) prune(save, keep);
    if (first) close_folder(save, status);
    mesh_any(group->mesh, 0); /* when this returns, nothing is left on any rank's disk */
    return status;
}

int checkpoint_save(const struct mesh *mesh, const char *directory, const struct checkpoint_content *content,
                    const struct checkpoint_info *info, const struct checkpoint_keep *keep,
                    enum checkpoint_files files) {
    struct file_group group = file_group_all(mesh);
    struct save save = {.content = content, .step = info->step, .files = files, .folder = -1};
    save.best = !isnan(info->loss) && !(info->loss > info->best_loss);
    folder_step_name(info->step, save.name);
    folder_temporary(save.name, save.prepared);
    if (asprintf(&save.path, "%s/checkpoints", directory) < 0) save.path = NULL;
    if (!save.path || asprintf(&save.file, "%s/%s/%s", save.path, save.prepared, CHECKPOINT_FILE) < 0)
        save.file = NULL;
    int status = file_group_agree(&group, save.file ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a path"));
    if (!status) status = save_on(&group, directory, content, info, keep, &save);
    free(save.file);
    free(save.path);
    return status;
}

int64_t checkpoint_bytes(const struct checkpoint_content *content) {
    int64_t elements = 0;
    for (int i = 0; i < content->global->rows; i++) {
        const struct row *row = &content->global->row[i];
        const struct moments *moments = content->state->moment[0] ? row->treatment.moments : NULL;
        elements += row->shape[0] * row->shape[1] * (1 + (moments ? moments->count : 0));
    }
    return elements * (int64_t)sizeof(real);
}
