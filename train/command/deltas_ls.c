/* gdn deltas ls: a line for each stored difference, for people or for programs. */
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/deltas/each.h"
#include "train/command/deltas.h"
#include "train/command/json_line.h"
#include "train/config/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct listing {
    int count;
    bool json;
    int64_t stored, plain, disk; /* bytes */
};

/* Bytes of the factors, and of the difference itself in the same numbers. */
static int64_t stored_bytes(const struct factors *f, int element) {
    return ((int64_t)f->T + f->D + 1) * f->rank * element;
}

static int64_t plain_bytes(const struct factors *f, int element) {
    return (int64_t)f->T * f->D * element;
}

static void print_row(const struct delta_record *r, int64_t stored, int64_t plain, bool first) {
    const struct factors *f = &r->factors;
    char shape[48], source[16] = "embedding";
    if (first)
        printf("%8s %6s %8s %9s %14s %6s %10s %12s %12s %6s\n", "step", "layer", "distance", "source",
               "T x D", "rank", "error", "bytes", "plain bytes", "gate");
    if (r->source >= 0) snprintf(source, sizeof source, "%d", r->source);
    snprintf(shape, sizeof shape, "%ld x %ld", f->T, f->D);
    printf("%8" PRId64 " %6d %8d %9s %14s %6ld %10.3g %12" PRId64 " %12" PRId64 " %6.3f\n", r->step, r->layer,
           r->distance, source, shape, f->rank, f->error, stored, plain, r->gate_mean);
}

static void print_quoted(const char *text) {
    json_t *string = json_bytes(text, strlen(text));
    json_dumpf(string, stdout, JSON_ENCODE_ANY);
    json_decref(string);
}

static void print_number(const char *key, double value) {
    char text[NUMBER_TEXT];
    number_write(value, text);
    printf(",\"%s\":%s", key, text);
}

static void print_object(const struct delta_record *r, const char *path, int64_t stored, int64_t plain,
                         bool first) {
    const struct factors *f = &r->factors;
    printf("%s{\"step\":%" PRId64 ",\"layer\":%d,\"distance\":%d,\"source\":%d", first ? "" : ",\n", r->step,
           r->layer, r->distance, r->source);
    printf(",\"batch\":%ld,\"length\":%ld,\"hidden\":%ld,\"rank\":%ld", r->batch, r->length, f->D, f->rank);
    printf(",\"bytes\":%" PRId64 ",\"plain_bytes\":%" PRId64, stored, plain);
    print_number("relative_error", f->error);
    print_number("norm", f->norm);
    print_number("gate_mean", r->gate_mean);
    print_number("gate_deviation", r->gate_deviation);
    print_number("gate_least", r->gate_least);
    print_number("gate_most", r->gate_most);
    printf(",\"file\":");
    print_quoted(path);
    putchar('}');
}

static int list_record(void *context, const struct delta_entry *entry, struct delta_record *r, int element) {
    struct listing *l = context;
    int64_t stored = stored_bytes(&r->factors, element), plain = plain_bytes(&r->factors, element);
    if (l->json)
        print_object(r, entry->path, stored, plain, !l->count);
    else
        print_row(r, stored, plain, !l->count);
    l->count++;
    l->stored += stored, l->plain += plain;
    /* Output that nobody takes is no reason to read on. */
    return ferror(stdout) ? commands_finish_printing() : 0;
}

static void add_file_sizes(const struct delta_list *list, struct listing *l) {
    struct stat about;
    for (int i = 0; i < list->count; i++) { /* a file's entries follow each other */
        const struct delta_entry *e = &list->entry[i];
        bool seen = i && e[-1].step == e->step && e[-1].layer == e->layer;
        if (!seen && !stat(e->path, &about)) l->disk += about.st_size;
    }
}

static void print_end(const struct listing *l, const struct delta_survey *survey) {
    if (l->count)
        printf("%d difference%s: %" PRId64 " bytes for %" PRId64 ", %.1f%%; %" PRId64
               " bytes on disk in %d file%s\n",
               l->count, l->count == 1 ? "" : "s", l->stored, l->plain,
               100 * (double)l->stored / (double)l->plain, l->disk, survey->files - survey->damaged,
               survey->files - survey->damaged == 1 ? "" : "s");
    for (int i = 0; i < survey->damaged; i++) printf("%s\n", survey->damage[i].text);
}

static void print_json_end(const struct listing *l, const struct delta_survey *survey) {
    printf("],\n\"bytes\":%" PRId64 ",\"plain_bytes\":%" PRId64 ",\"bytes_on_disk\":%" PRId64
           ",\n\"damaged\":[",
           l->stored, l->plain, l->disk);
    for (int i = 0; i < survey->damaged; i++) {
        printf("%s{\"file\":", i ? ",\n" : "");
        print_quoted(survey->damage[i].path);
        printf(",\"reason\":");
        print_quoted(survey->damage[i].text);
        putchar('}');
    }
    printf("]}\n");
}

static int list_all(struct delta_survey *survey, struct listing *l) {
    if (l->json) printf("{\"deltas\":[");
    TRY(deltas_each(survey, list_record, l));
    add_file_sizes(&survey->list, l);
    if (l->json)
        print_json_end(l, survey);
    else
        print_end(l, survey);
    return commands_finish_printing();
}

int deltas_ls(const struct deltas_settings *settings) {
    struct delta_survey survey;
    struct listing listing = {.json = settings->json};
    TRY(delta_survey(settings->run, &settings->choice, &survey));
    int status = list_all(&survey, &listing);
    if (!status) status = deltas_report_damage(&survey);
    delta_survey_free(&survey);
    return status;
}
