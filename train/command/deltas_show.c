/* gdn deltas show: all that is known of connections, with pictures in text. */
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/deltas/each.h"
#include "train/command/deltas.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    BAR = 40,    /* characters of the longest bar */
    FIRST = 12,  /* singular values that are printed */
    ROWS = 16,   /* lines of a histogram */
    DECADES = 6, /* that bars of singular values span */
};

/* A part of a bar's length, and the line's end. Something that is not 0 shows. */
static void print_bar(double part) {
    int length = (int)lround(part * BAR);
    if (length == 0 && part > 0) length = 1;
    printf("%s%.*s\n", length ? "  " : "", length, "########################################");
}

static void print_head(const struct delta_record *r, const char *path, int element) {
    const struct factors *f = &r->factors;
    char source[32] = "the embedding";
    if (r->source >= 0) snprintf(source, sizeof source, "layer %d", r->source);
    printf("layer %d, distance %d: target layer %d, source %s, step %" PRId64 "\n", r->layer, r->distance,
           r->layer, source, r->step);
    printf("file      %s, distance_%d\n", path, r->distance);
    printf("shape     batch %ld x length %ld x hidden %ld, a matrix of %ld x %ld\n", r->batch, r->length,
           f->D, f->T, f->D);
    printf("norm      %.6g; %.4g a number (root of the mean square)\n", f->norm,
           f->norm / sqrt((double)f->T * (double)f->D));
    printf("rank      %ld of %ld, relative error %.4g\n", f->rank, f->T < f->D ? f->T : f->D, f->error);
    long stored = (f->T + f->D + 1) * f->rank * element, plain = f->T * f->D * element;
    printf("bytes     %ld for %ld, %.1f%%\n", stored, plain, 100 * (double)stored / (double)plain);
}

static void print_singular_values(const struct factors *f) {
    printf("\nsingular values 1 to %ld of %ld (bars: logarithms, over %d decades)\n",
           f->rank < FIRST ? f->rank : FIRST, f->rank, DECADES);
    for (long i = 0; i < f->rank && i < FIRST; i++) {
        printf("%6ld  %11.5g", i + 1, (double)f->sigma[i]);
        print_bar(f->sigma[i] > 0 ? fmax(0, 1 + log10((double)f->sigma[i] / (double)f->sigma[0]) / DECADES)
                                  : 0);
    }
}

static void print_energy(const struct factors *f, long k) {
    double error = deltas_error_of(f, k), energy = f->norm > 0 ? fmax(0, 1 - error * error) : 1;
    printf("%6ld  %10.4f%%  error %-9.3g", k, 100 * energy, error);
    print_bar(energy);
}

/* At 1, 2, 4, … and at all that is stored. */
static void print_energies(const struct factors *f) {
    printf("\nenergy by rank: the part of the squared norm that the first singular values hold\n");
    long k = 1;
    for (; k < f->rank; k *= 2) print_energy(f, k);
    print_energy(f, f->rank);
}

static void print_gates(const struct delta_record *r) {
    int64_t row[ROWS] = {0}, max = 1;
    for (int i = 0; i < DELTA_BINS; i++) row[i * ROWS / DELTA_BINS] += r->gate_histogram[i];
    for (int i = 0; i < ROWS; i++)
        if (row[i] > max) max = row[i];
    printf("\ngates: mean %.4f, deviation %.4f, from %.4f to %.4f\n", r->gate_mean, r->gate_deviation,
           r->gate_least, r->gate_most);
    for (int i = 0; i < ROWS; i++) {
        printf("  %.4f to %.4f  %12" PRId64, (double)i / ROWS, (i + 1.0) / ROWS, row[i]);
        print_bar((double)row[i] / (double)max);
    }
}

static int show_record(void *context, const struct delta_entry *entry, struct delta_record *r, int element) {
    int *shown = context;
    if ((*shown)++) printf("\n\n");
    print_head(r, entry->path, element);
    print_singular_values(&r->factors);
    print_energies(&r->factors);
    print_gates(r);
    return ferror(stdout) ? commands_finish_printing() : 0;
}

int deltas_show(const struct deltas_settings *settings) {
    struct delta_survey survey;
    int shown = 0;
    TRY(delta_survey(settings->run, &settings->choice, &survey));
    int status = deltas_each(&survey, show_record, &shown);
    if (!status) status = commands_finish_printing();
    if (!status) status = deltas_report_damage(&survey);
    delta_survey_free(&survey);
    return status;
}
