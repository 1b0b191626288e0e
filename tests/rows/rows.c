#include "rows.h"

#include "train/config/config.h"

/* What no key of the configuration does. */
static void choose(struct config *config) {
    choose_mixers(&config->model);
    choose_axes(config->mesh.size);
}

void rows_register(void) {
    rows_of_axes();
    rows_of_optimizers();
    rows_of_mixers();
    rows_of_rules();
    rows_of_gates();
    rows_of_aggregates();
    rows_of_edges();
    rows_of_formats();
    config_register(choose);
}
