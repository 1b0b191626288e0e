/* Checkpoints as they are opened: whole, or not at all. */
#include "dist/checkpoint/file.h"
#include "dist/checkpoint/intact.h"
#include "data/hdf5/h5.h"
#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>

int checkpoint_open(const struct mesh *mesh, const char *path, struct checkpoint *out) {
    struct file_group group = file_group_all(mesh);
    hid_t file;
    *out = (struct checkpoint){0};
    TRY(file_verify(&group, path));
    int status = file_open(path, &file, &out->info);
    if (!status) {
        h5_close(file);
        out->path = strdup(path);
        if (!out->path) status = gdn_fail(GDN_INTERNAL, "out of memory for a path");
    }
    status = file_group_agree(&group, status);
    if (!status && group.rank == 0) checkpoint_note_file(path);
    if (status) checkpoint_close(out);
    return status;
}

void checkpoint_close(struct checkpoint *checkpoint) {
    file_info_free(&checkpoint->info);
    free(checkpoint->path);
    *checkpoint = (struct checkpoint){0};
}
