/* gdn check: whether the machines that a run is about to start on are fit for it. Nothing is trained or
 * kept. */
#include "train/command/commands.h"

#include "kernels/backends/backends.h"
#include "train/check/disk.h"
#include "train/check/network.h"
#include "train/check/report.h"
#include "train/command/options.h"
#include "train/run/run.h"
#include "train/run/ranks.h"
#include "train/records/rundir.h"

#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SKEW 2.0 /* seconds that clocks may be apart */

struct settings {
    double min_bandwidth; /* bytes a second; 0: any */
    double max_skew;      /* seconds */
};

enum { KEY_BANDWIDTH = 256, KEY_SKEW, KEY_DATA_CHANGED };

static int take_option(int key, const char *value, void *input) {
    struct settings *s = input;
    bool accept; /* it does not matter here */
    if (key == KEY_DATA_CHANGED) return options_data_changed(value, &accept);
    if (key == KEY_SKEW) return options_real("--most-skew", value, 0, 1e9, &s->max_skew);
    return options_real("--least-bandwidth", value, 1, 1e24, &s->min_bandwidth);
}

static const struct argp_option own[] = {
    {"least-bandwidth", KEY_BANDWIDTH, "X", 0,
     "bytes a second that each rank must reach in sums over every axis (default: any)", 0},
    {"data-changed", KEY_DATA_CHANGED, "refuse|accept", 0,
     "as for gdn train, which decides by it; nothing is looked at for it", 0},
    {"most-skew", KEY_SKEW, "SECONDS", 0, "that clocks may be apart (default 2)", 0},
    {0},
};

static const struct command_line line = {
    .arguments = "CONFIG.yaml",
    .doc =
        "Checks whether the ranks that it is started with are fit for a run, in some seconds: started as gdn "
        "train would "
        "be, with the same options."
        "\v"
        "Looks at the ranks' places and the mesh, devices, threads, speed of sums over each axis, clocks, "
        "data, "
        "memory, the run directory, and the disk space that checkpoints will take. Prints a line for each; "
        "nothing stays in the run directory. With data.tokenizer, text is made tokens first, where that was "
        "not done, which may take long; they stay in data.cache, where the run finds them. Exit status 0, or "
        "2 where something is unfit, which is named.\n"
        "\n"
        "Speeds are of the slowest rank, in sums of 4 MiB; a rank of n hands over 2 (n-1)/n of them.\n"
        "\n"
        "Examples:\n"
        "  mpirun -n 8 gdn check model.yaml --set mesh.tensor=2\n"
        "  srun --mpi=pmix gdn check model.yaml --run-dir /scratch/runs/model",
    .common = OPTION_SET | OPTION_RUN_DIR | OPTION_RESUME | OPTION_HELP_CONFIG | OPTION_RESUME_WITH,
    .own = own,
    .take = take_option,
    .min = 1,
    .max = 1,
};

struct check {
    struct run run;
    struct rundir rundir; /* stays closed */
    struct check_report report;
    const struct settings *settings;
};

/* ------------------------------------------------------------------------------------------ ranks */

/* A job step of several tasks, each of which MPI believes to be alone: srun without PMIx starts them so, and
 * each would train by itself in the same directory. */
static int check_started_together(const struct mesh *mesh) {
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    if (mesh->size > 1 || !tasks || atol(tasks) < 2 || getenv("OMPI_COMM_WORLD_SIZE")) return 0;
    return gdn_fail(
        GDN_INPUT,
        "srun has started %s tasks, but MPI sees this one alone; start them with srun --mpi=pmix (srun "
        "--mpi=list says what there is), or with mpirun",
        tasks);
}

struct place {
    char node[64], device[160];
    int threads, gpu; /* −1: no GPU */
};

/* Every rank's place, [ranks]. free() it. */
static int gather_places(struct check *check, struct place **out) {
    const struct run *run = &check->run;
    const struct mesh *mesh = &run->mesh;
    const char *node = getenv("SLURMD_NODENAME");
    const struct device *device = run->ops->device;
    struct place mine = {.threads = omp_get_max_threads(), .gpu = device->host ? -1 : device->number()};
    snprintf(mine.node, sizeof mine.node, "%s", node ? node : mesh->host);
    snprintf(mine.device, sizeof mine.device, "%s",
             device->host ? ops_describe(run->ops) : device->describe());
    char *comma = device->host ? strrchr(mine.device, ',') : NULL;
    if (comma && strstr(comma, "thread")) *comma = 0; /* they have a row of their own */
    *out = calloc((size_t)mesh->size, sizeof **out);
    TRY(mesh_agree(mesh, *out ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the ranks' places")));
    return mesh_agree(mesh, mesh_gather(mesh, &mine, sizeof mine, *out));
}

/* "8 on 2 nodes: n1 4, n2 4" */
static void tell_ranks(struct check *check, const struct place *place) {
    enum { NAMED = 16 };
    int size = check->run.mesh.size, nodes = 0;
    char text[CHECK_TEXT] = "";
    size_t at = 0;
    for (int r = 0; r < size; r++) {
        int first = 0, count = 0;
        while (strcmp(place[first].node, place[r].node)) first++;
        if (first < r) continue;
        for (int i = r; i < size; i++) count += !strcmp(place[i].node, place[r].node);
        if (nodes++ < NAMED)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%.40s %d", nodes > 1 ? ", " : "",
                                   place[r].node, count);
    }
    check_fit(&check->report, "ranks", "%d on %d node%s: %s%s", size, nodes, nodes > 1 ? "s" : "", text,
              nodes > NAMED ? ", …" : "");
}

static void tell_mesh(struct check *check) {
    const struct mesh *mesh = &check->run.mesh;
    char *text = NULL, axes[AXES_TEXT];
    size_t size = 0;
    FILE *file = mesh->rank == 0 ? open_memstream(&text, &size) : NULL;
    if (mesh->size > 1) ranks_describe(mesh, file);
    if (file) fclose(file);
    char *where = text ? strchr(text, ':') : NULL;
    if (where) where[strcspn(where, "\n")] = 0;
    check_fit(&check->report, "mesh", "%s%s%s", axes_text(mesh->sizes.size, axes), where ? "; " : "",
              where ? where + 2 : "");
    free(text);
}

static void tell_devices(struct check *check, const struct place *place) {
    int size = check->run.mesh.size, kinds = 0, shared = 0, min = INT_MAX, max = 0;
    for (int r = 0; r < size; r++) {
        int same = 0, gpu = 0;
        while (strcmp(place[same].device, place[r].device)) same++;
        kinds += same == r;
        while (place[gpu].gpu != place[r].gpu || strcmp(place[gpu].node, place[r].node)) gpu++;
        shared += place[r].gpu >= 0 && gpu < r;
        if (place[r].threads < min) min = place[r].threads;
        if (place[r].threads > max) max = place[r].threads;
    }
    char more[160] = "";
    if (kinds > 1) snprintf(more, sizeof more, "; not all alike: %d kinds", kinds);
    if (shared)
        snprintf(more + strlen(more), sizeof more - strlen(more), "; %d ranks share a GPU with another",
                 shared);
    check_fit(&check->report, "devices", "%s%s", place[0].device, more);
    if (min == max)
        check_fit(&check->report, "threads", "%d a rank", min);
    else
        check_fit(&check->report, "threads", "%d to %d a rank", min, max);
}

static int look_at_ranks(struct check *check) {
    struct place *place = NULL;
    int status = gather_places(check, &place);
    if (!status && check->run.mesh.rank == 0) {
        tell_ranks(check, place);
        tell_devices(check, place);
    }
    free(place);
    if (status) return status;
    if (check->run.mesh.rank) { /* rows are counted on all ranks alike */
        for (int i = 0; i < 3; i++) check_fit(&check->report, "", "%s", "");
    }
    tell_mesh(check);
    return 0;
}

/* ----------------------------------------------------------------------------------- between ranks */

static const char *rate(double bytes, char text[32]) {
    snprintf(text, 32, bytes >= 1e9 ? "%.2f GB/s" : "%.1f MB/s", bytes >= 1e9 ? bytes / 1e9 : bytes / 1e6);
    return text;
}

static int judge_speed(const struct check *check, const struct axis_speed *speed) {
    char is[32], wanted[32];
    if (speed->large >= check->settings->min_bandwidth) return 0;
    return gdn_fail(GDN_INPUT,
                    "%s a rank in sums of 4 MiB, slowest at rank %d; --least-bandwidth asks for %s",
                    rate(speed->large, is), speed->rank, rate(check->settings->min_bandwidth, wanted));
}

/* The same on all ranks, so that a failure to measure is all that can end the check early. */
static int look_at_axes(struct check *check) {
    struct mesh *mesh = &check->run.mesh;
    for (int a = 0; a < axes_count(); a++) {
        struct axis *axis = &mesh->axis[a];
        struct axis_speed speed;
        char name[32], text[200], medium[32], large[32];
        if (axis->size == 1) continue;
        TRY(check_axis(mesh, axis, check->run.ops, &speed));
        snprintf(text, sizeof text, "%s a rank, %s in sums of 64 KiB; %.0f us a sum; slowest at rank %d",
                 rate(speed.large, large), rate(speed.medium, medium), 1e6 * speed.latency, speed.rank);
        snprintf(name, sizeof name, "%s axis", axis->name);
        check_outcome(&check->report, name, judge_speed(check, &speed), text);
    }
    return 0;
}

static int look_at_clocks(struct check *check) {
    struct clock_skew skew;
    char text[160];
    if (check->run.mesh.size == 1) return 0;
    TRY(check_clocks(&check->run.mesh, &skew));
    snprintf(text, sizeof text, "at most %.6f s apart (rank %d, +- %.6f s)", fabs(skew.seconds), skew.rank,
             skew.uncertainty);
    int status = 0;
    if (fabs(skew.seconds) - skew.uncertainty > check->settings->max_skew)
        status = gdn_fail(
            GDN_INPUT,
            "the clock of rank %d is %.3f s %s rank 0's (+- %.3f s), more than %g s: time limits and "
            "the times of files will be wrong; set the machines' clocks",
            skew.rank, fabs(skew.seconds), skew.seconds > 0 ? "ahead of" : "behind", skew.uncertainty,
            check->settings->max_skew);
    check_outcome(&check->report, "clocks", status, text);
    return 0;
}

/* -------------------------------------------------------------------------------- data, memory, disk */

/* Bad input is a row of the table; anything else ends the check. */
static bool is_row(int status) {
    return status == 0 || status == GDN_INPUT;
}

static int look_at_memory(struct check *check) {
    struct run *run = &check->run;
    int status = run_open_data(run, run->mesh.rank == 0 ? stderr : NULL);
    if (!is_row(status)) return status;
    bool data = !status;
    check_outcome(&check->report, "data", status, "readable, and the first batch is within the vocabulary");
    if (!data) return 0; /* without it evaluations are not known, and less memory would be planned */
    status = run_plan(run);
    if (!is_row(status)) return status;
    char text[160];
    double unit = 1048576, planned = (double)memory_sum(&run->plan.planned) / unit;
    snprintf(text, sizeof text, "%.1f MiB on rank 0", planned);
    if (run->plan.available.bytes)
        snprintf(text, sizeof text, "%.1f MiB on rank 0, of %.0f MiB", planned,
                 (double)run->plan.available.bytes / unit);
    check_outcome(&check->report, "memory", status, text);
    return 0;
}

static int look_at_disk(struct check *check) {
    const struct run *run = &check->run;
    const char *directory = check->rundir.path;
    char text[CHECK_TEXT];
    int status = check_directory(&run->mesh, directory);
    if (!is_row(status)) return status;
    bool seen = !status;
    snprintf(text, sizeof text, "%.900s: all ranks see it and write there", directory);
    check_outcome(&check->report, "directory", status, text);
    if (!seen) return 0;

    struct check_space space;
    status = check_space(&run->mesh, directory, &run->config, &run->part.global, &space);
    if (!is_row(status)) return status;
    double unit = 1048576;
    char number[64] = "their number is not known";
    if (!space.unknown)
        snprintf(number, sizeof number, "%lld at most", (long long)(space.expected / space.each));
    snprintf(text, sizeof text, "checkpoints of %.1f MiB, %s, %.1f MiB there already; %.0f MiB free",
             (double)space.each / unit, number, (double)space.present / unit, (double)space.free / unit);
    check_outcome(&check->report, "disk", status, text);
    return 0;
}

/* ----------------------------------------------------------------------------------------- the whole */

/* The checkpoint that a run would go on from. A run directory that is not there yet has none, and one that is
 * no directory is look_at_disk's to judge. */
static int find_start(struct check *check, const char *resume, FILE *log) {
    struct mesh *mesh = &check->run.mesh;
    struct stat about;
    bool there = mesh->rank == 0 && !stat(check->rundir.path, &about) && S_ISDIR(about.st_mode);
    TRY(mesh_broadcast(mesh, &there, sizeof there));
    return there || resume ? run_find_start(&check->run, check->rundir.path, resume, log) : 0;
}

/* What the rest needs ends the check where it fails; what is looked at then is put together. */
static int look(struct check *check, const struct options *options) {
    struct run *run = &check->run;
    FILE *log = run->mesh.rank == 0 ? stderr : NULL;
    TRY(mesh_agree(&run->mesh, check_started_together(&run->mesh)));
    TRY(mesh_agree(&run->mesh, config_validate_changes(options->resume_with, options->num_resume_with)));
    TRY(run_configure(run, options->argument[0], options->set, options->num_set));
    TRY(find_start(check, options->resume, log));
    TRY(run_adopt(run, options->resume_with, options->num_resume_with, log));
    TRY(run_prepare(run, log));
    TRY(look_at_ranks(check));
    TRY(look_at_axes(check));
    TRY(look_at_clocks(check));
    TRY(look_at_memory(check));
    TRY(look_at_disk(check));
    check_print(&check->report, run->mesh.rank == 0 ? stdout : NULL);
    return check_verdict(&check->report);
}

static int check_on_ranks(const struct options *options, const struct settings *settings) {
    struct check *check = calloc(1, sizeof *check);
    if (!check) return gdn_fail(GDN_INTERNAL, "out of memory");
    check->settings = settings;
    run_init(&check->run);
    int status = rundir_name(&check->rundir, options->run_dir, options->argument[0]);
    if (!status) {
        status = ranks_begin(&check->run.mesh);
        if (!status) status = look(check, options);
        run_free(&check->run);
        status = ranks_end(&check->run.mesh, status);
    }
    free(check);
    return status;
}

int cmd_check(int argc, char **argv) {
    struct settings settings = {.max_skew = MAX_SKEW};
    struct options options;
    int status = options_parse(&line, argc, argv, &options, &settings);
    if (!status && !options.done) status = check_on_ranks(&options, &settings);
    options_free(&options);
    return status;
}
