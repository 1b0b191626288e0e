#include "tests/train/run/mesh_fixture.h"

#include <stdio.h>

#include "kernels/base/random.h"

const char *text_path(void) {
    return scratch_path("text");
}

static bool write_text(void) {
    FILE *out = fopen(text_path(), "w");
    if (!out) return false;
    for (int i = 0; i < 4000; i++) fprintf(out, "%d ", i * i);
    return fclose(out) == 0;
}

int world_with_text(void) {
    TRY(world_create());
    bool written = world.rank != 0 || write_text();
    return mesh_any(&world, !written) ? gdn_fail(GDN_INTERNAL, "%s cannot be written", text_path()) : 0;
}

void overrides_fill(struct overrides *o, const struct mesh_case *c) {
    *o = (struct overrides){.count = 4};
    snprintf(o->axes[0], sizeof o->axes[0], "mesh.data=%d", c->mesh.data);
    snprintf(o->axes[1], sizeof o->axes[1], "mesh.tensor=%d", c->mesh.tensor);
    snprintf(o->axes[2], sizeof o->axes[2], "mesh.pipeline=%d", c->mesh.pipeline);
    snprintf(o->data, sizeof o->data, "data.train=%s", text_path());
    for (int i = 0; i < 3; i++) o->set[i] = o->axes[i];
    o->set[3] = o->data;
    for (int i = 0; i < CASE_SET && c->set[i]; i++) o->set[o->count++] = c->set[i];
}

int configured(struct run *run, const char *base, const struct overrides *overrides) {
    struct config config;
    run_init(run);
    run->mesh = world;
    TRY(config_parse(base, "test", overrides->set, overrides->count, &config));
    return run_configure_as(run, &config);
}

int prepared(struct run *run, const char *base, const struct overrides *overrides) {
    TRY(configured(run, base, overrides));
    int status = run_prepare(run, NULL);
    world = run->mesh;
    return status;
}

int readied(struct run *run) {
    TRY(run_open_data(run, NULL));
    TRY(run_plan(run));
    TRY(run_reserve(run));
    TRY(run_load(run, NULL));
    int status = run_create(run);
    world = run->mesh;
    return status;
}

int started(struct run *run, const char *base, const struct mesh_case *c) {
    struct overrides overrides;
    overrides_fill(&overrides, c);
    TRY(prepared(run, base, &overrides));
    return readied(run);
}

void connections_drawn(struct run *run) {
    for (int i = 0; i < run->part.table->rows; i++) {
        const struct row *row = &run->part.table->row[i];
        for (long k = 0; k < row->count && row->distance; k++) {
            uint64_t at = (uint64_t)(row->start[0] * 1000 + row->start[1] + k);
            run->training.state.weight[row->offset + k] +=
                (real)(0.1 * random_normal(3, random_name(row->name), at));
        }
    }
}

void ended(struct run *run) {
    run_free(run);
    world = run->mesh;
}
