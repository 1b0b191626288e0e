#include "train/command/checkpoint_list.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dist/checkpoint/checkpoint.h"
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/command/json_line.h"

static int no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for the list of checkpoints");
}

/* What `ls` has found so far. */
struct listing {
    json_t *all; /* with --json; NULL: a line each is printed */
    bool headed; /* the line above these is */
};

static void print_head(struct listing *listing) {
    if (!listing->headed) printf("%10s %14s %14s %10s  state\n", "step", "samples", "loss", "MiB");
    listing->headed = true;
}

static int print_entry(const struct checkpoint_entry *e) {
    const struct checkpoint_info *info = e->info;
    printf("%10" PRId64 " ", e->step);
    if (info)
        printf("%14" PRId64 " ", info->samples);
    else
        printf("%14s ", "-");
    if (info && !isnan(info->loss))
        printf("%14.6f", info->loss);
    else
        printf("%14s", "-");
    printf(" %10.1f  %s%s%s%s%s\n", (double)e->bytes / 1048576, info ? "whole" : "damaged",
           e->latest ? ", latest" : "", e->best ? ", best" : "", info ? "" : ": ", info ? "" : e->damage);
    return ferror(stdout) ? commands_finish_printing() : GDN_OK;
}

/* A checkpoint as an object; NULL without memory. */
static json_t *entry_json(const struct checkpoint_entry *e) {
    const struct checkpoint_info *info = e->info;
    return json_pack("{s:I, s:o, s:I, s:b, s:b, s:b, s:o, s:o, s:o}", "step", (json_int_t)e->step, "path",
                     json_bytes(e->path, strlen(e->path)), "bytes", (json_int_t)e->bytes, "valid",
                     info != NULL, "latest", e->latest, "best", e->best, "samples",
                     info ? json_integer(info->samples) : json_null(), "loss",
                     info ? json_finite(info->loss) : json_null(), "reason",
                     info ? json_null() : json_bytes(e->damage, strlen(e->damage)));
}

static int list_entry(void *context, const struct checkpoint_entry *entry) {
    struct listing *listing = context;
    if (!listing->all) {
        print_head(listing);
        return print_entry(entry);
    }
    if (!json_array_append_new(listing->all, entry_json(entry))) return GDN_OK;
    return no_memory();
}

int checkpoint_list(const char *run, bool json) {
    struct listing listing = {.all = json ? json_array() : NULL};
    if (json && !listing.all) return no_memory();
    int status = checkpoint_each(run, list_entry, &listing);
    if (!status && json) return json_print_line(listing.all);
    json_decref(listing.all);
    if (status) return status;
    print_head(&listing); /* of none */
    return commands_finish_printing();
}
