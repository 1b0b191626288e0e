#include "train/plan/machine.h"

struct plan_machine plan_machine_of(double flops, double bandwidth, double memory) {
    struct plan_machine machine = {.flops = flops, .memory = memory, .stages = 1};
    for (int a = 0; a < axes_count(); a++) machine.bandwidth[a] = bandwidth;
    return machine;
}

/* Whether no block of so many ranks, from a multiple of it, is of different nodes. */
static bool lies_within(const struct plan_machine *machine, const int size[AXES], long block) {
    return axes_ranks(size) <= machine->node || machine->node % block == 0;
}

void plan_machine_place(struct plan_machine *machine, const int size[AXES], int sum_group) {
    const bool placed = machine->bandwidth[AXIS_COPIES] == 0;
    for (int a = 0; a < axes_count(); a++) {
        if (machine->bandwidth[a] > 0) continue;
        long block =
            axes_stride(size, (enum mesh_axis)a) * size[a]; /* consecutive ranks, from a multiple of it */
        bool within = lies_within(machine, size, block);
        machine->bandwidth[a] = within ? machine->inside : machine->outside;
        machine->leaves[a] = !within;
    }
    const int stage = (int)axes_stride(size, AXIS_PIPELINE);
    machine->stages = machine->node > stage && machine->node % stage == 0 ? machine->node / stage : 1;
    /* Copies are neighbours but for tensor ranks. */
    const int each = size[AXIS_TENSOR], copies = axes_joined(size).size[AXIS_COPIES];
    machine->others = copies / sum_group - 1;
    if (!placed || !lies_within(machine, size, (long)each * sum_group)) return;
    machine->within = machine->inside;
    if (!machine->leaves[AXIS_COPIES] || machine->node % (each * sum_group)) return;
    machine->stays = (double)(machine->node / each / sum_group - 1) / machine->others;
}

double plan_machine_parts(const struct plan_machine *machine) {
    const double parts = machine->others * (1 - machine->stays);
    return parts > 1 ? parts : 1;
}
