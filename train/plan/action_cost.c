#include "train/plan/action_cost.h"

double action_transfer(const struct plan_machine *machine, const struct action_cost *cost, int axis) {
    return cost->calls[axis] * machine->latency + (double)cost->bytes[axis] / machine->bandwidth[axis];
}

double action_waited(const struct plan_machine *machine, const struct action_cost *cost, int axis) {
    const struct hidden_cost *beside = &cost->hidden[axis];
    double all = action_transfer(machine, cost, axis), arithmetic = beside->covering / machine->flops;
    double hidden = beside->calls * machine->latency + (double)beside->bytes / machine->bandwidth[axis];
    return all - (hidden < arithmetic ? hidden : arithmetic);
}

double action_within(const struct plan_machine *machine, const struct action_cost *cost) {
    const double bandwidth = machine->within > 0 ? machine->within : machine->bandwidth[AXIS_COPIES];
    return cost->within ? machine->latency + (double)cost->within / bandwidth : 0;
}

double action_across(const struct plan_machine *machine, const struct action_cost *cost) {
    const double bytes = (double)(cost->bytes[AXIS_COPIES] - cost->within);
    return bytes * (1 - machine->stays) / machine->bandwidth[AXIS_COPIES];
}
