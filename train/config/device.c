#include "kernels/base/status.h"
#include "train/config/config.h"

const char *config_device_name(const struct config *config) {
    static const char *const names[] = {
        [DEVICE_AUTO] = "auto", [DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda", [DEVICE_EMULATED] = "emulated"};
    return names[config->device];
}

bool config_on_host(const struct config *config) {
    return config->device == DEVICE_CPU || config->device == DEVICE_AUTO;
}

long config_weight_copy(const struct config *config) {
    return weight_copy_bytes(config_on_host(config), (enum precision)config->train.precision);
}

int config_validate_graphs(const struct config *config, bool records) {
    if (!config->train.graphs || records) return 0;
    return gdn_fail(GDN_INPUT, "train.graphs: the cpu has nothing to record passes with; false is expected");
}

int config_validate_staged(const struct config *config, const bool staged[AXES]) {
    bool any = false;
    for (int a = 0; a < axes_count(); a++) any |= staged[a];
    if (config->mesh.tensor_pieces > 1 && staged[AXIS_TENSOR])
        return gdn_fail_in(gdn_fail(GDN_INPUT,
                                    "sums of a device's buffers travel beside products over nccl alone, and "
                                    "here the transport is staged: 1 is expected"),
                           "mesh.tensor_pieces");
    if (!config->train.graphs || !any) return 0;
    return gdn_fail_in(
        gdn_fail(GDN_INPUT, "passes on several ranks are recorded with exchanges by nccl alone, and here the "
                            "transport is staged: false is expected"),
        "train.graphs");
}
