#include "train/run/backend.h"

#include "dist/mesh/machine.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "model/model.h"

/* Tells which GPU this rank takes: by the ranks of its machine before it. */
static int choose_gpu(const struct mesh *mesh) {
    int local;
    TRY(machine_rank(mesh, &local));
    ops_set_local(local);
    return 0;
}

/* Every rank looks for a GPU. */
int backend_find(const struct mesh *mesh, int *device) {
    TRY(choose_gpu(mesh));
    int have = ops_have_driver() && ops_find("cuda"), min = have, max = have;
    gdn_failure_clear();
    TRY(mesh_reduce(mesh, &min, 1, MPI_INT, MPI_MIN));
    TRY(mesh_reduce(mesh, &max, 1, MPI_INT, MPI_MAX));
    *device = min ? DEVICE_CUDA : DEVICE_CPU;
    if (min == max) return 0;
    return gdn_fail(GDN_INPUT, "device: auto, but only some ranks have a GPU: start them on machines alike, "
                               "or choose device cpu");
}

static int open_device(const struct config *config, const struct ops **ops) {
    const char *name = config_device_name(config);
    const struct ops *found = ops_find(name);
    if (!found) return gdn_fail(GDN_INPUT, "device %s: this machine has none", name);
    *ops = ops_in(found, (enum precision)config->train.precision);
    if (*ops) {
        if (!(*ops)->device->host) TRY(model_validate_device(&config->model, name));
        return config_validate_graphs(config, (*ops)->device->record);
    }
    return gdn_fail_in(gdn_fail(GDN_INPUT, "device %s does not have it", name), "train.precision");
}

int backend_choose(struct config *config, const struct mesh *mesh, const struct ops **ops) {
    if (config->device == DEVICE_AUTO)
        TRY(backend_find(mesh, &config->device));
    else
        TRY(choose_gpu(mesh));
    return mesh_agree(mesh, open_device(config, ops));
}

void backend_note(const struct ops *ops, const char *lead, FILE *out) {
    if (ops_in_software(ops))
        fprintf(out,
                "%strain.precision: %s is computed in software on this processor, which has no units for it "
                "that are "
                "used: fp32 is faster here\n",
                lead, precision_word[ops->precision]);
}
