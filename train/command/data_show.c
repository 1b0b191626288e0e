/* gdn data show and gdn data sample: what token files hold, and samples as training reads them. One process,
 * no MPI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/format.h"
#include "data/left_over.h"
#include "data/sampler.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/command/data.h"
#include "train/command/json_line.h"
#include "train/command/options.h"
#include "train/config/number.h"

enum { SNIPPET = 256 }; /* tokens of text that `show` prints */

enum key { KEY_FORMAT = 256, KEY_LENGTH, KEY_ORDER, KEY_SEED, KEY_FIRST, KEY_COUNT, KEY_JSON };

struct settings {
    const struct token_format *format; /* NULL: not given */
    long length, first, count;         /* −1: not given */
    bool shuffle, json;
    uint64_t seed;
};

static int take_option(int key, const char *value, void *input) {
    struct settings *settings = input;
    switch (key) {
    case KEY_FORMAT:
        return options_format(value, &settings->format);
    case KEY_JSON:
        settings->json = true;
        return GDN_OK;
    case KEY_LENGTH:
        return options_long("--length", value, 1, INT32_MAX, &settings->length);
    case KEY_FIRST:
        return options_long("--first", value, 0, INT64_MAX / 2, &settings->first);
    case KEY_COUNT:
        return options_long("--count", value, 1, INT32_MAX, &settings->count);
    case KEY_SEED:
        if (number_unsigned(value, &settings->seed)) return GDN_OK;
        return gdn_fail(GDN_INPUT, "--seed '%s': a whole number from 0 to 2^64 - 1 is expected", value);
    default: /* KEY_ORDER */
        settings->shuffle = !strcmp(value, "shuffle");
        if (settings->shuffle || !strcmp(value, "sequential")) return GDN_OK;
        return gdn_fail(GDN_INPUT, "--order '%s': shuffle or sequential is expected", value);
    }
}

/* Prints tokens as the text they are, with everything that is not printable ASCII as \xNN, on one line. */
static void print_text(const int32_t *tokens, long count) {
    printf("text       \"");
    for (long i = 0; i < count; i++) {
        if (tokens[i] == TEXT_SEPARATOR)
            printf("<separator>");
        else if (tokens[i] == '\n')
            printf("\\n");
        else if (tokens[i] == '"' || tokens[i] == '\\')
            printf("\\%c", tokens[i]);
        else if (tokens[i] >= ' ' && tokens[i] < 127)
            putchar(tokens[i]);
        else
            printf("\\x%02x", (unsigned)tokens[i]);
    }
    printf("\"\n");
}

/* Bytes without control characters other than white space: ids of another vocabulary seldom are. */
static bool is_text(const int32_t *tokens, long count) {
    for (long i = 0; i < count; i++) {
        bool white = tokens[i] == '\t' || tokens[i] == '\n' || tokens[i] == '\r';
        if (!white && (tokens[i] < ' ' || tokens[i] > TEXT_SEPARATOR)) return false;
    }
    return true;
}

/* What samples of --length would leave empty. */
static int find_left_over(const struct settings *settings, struct tokens *tokens, struct left_over *out) {
    if (settings->length < 1) return GDN_OK;
    TRY(tokens_find_documents(tokens));
    return tokens_left_over(tokens, settings->length, out);
}

static void print_left_over(long length, const struct left_over *left) {
    printf("left over  of samples of %ld tokens: %.4f packed by best fit, %.4f a document each, %.4f by "
           "classes of lengths down to %ld\n",
           length, left->packed, left->alone, left->classes, left->shortest);
}

static int show_stream(const struct settings *settings, struct tokens *tokens) {
    int32_t first[SNIPPET];
    struct left_over left;
    TRY(find_left_over(settings, tokens, &left));
    long count = tokens_count(tokens) < SNIPPET ? tokens_count(tokens) : SNIPPET;
    TRY(tokens_describe(tokens, stdout));
    TRY(tokens_read(tokens, 0, count, first));
    if (is_text(first, count)) print_text(first, count);
    if (settings->length >= 1) print_left_over(settings->length, &left);
    return commands_finish_printing();
}

/* The files that are named on the command line, and --format or what the first of them looks like. */
static int name_files(const struct settings *settings, const struct options *options, struct path_list *files,
                      const struct token_format **format) {
    *files = (struct path_list){.paths = options->argument, .count = options->num_arguments};
    *format = settings->format;
    return !settings->format ? tokens_detect(files->paths[0], format) : GDN_OK;
}

static int show_json(const struct settings *settings, struct tokens *tokens) {
    struct tokens_summary about;
    struct left_over left;
    TRY(find_left_over(settings, tokens, &left));
    TRY(tokens_summarize(tokens, &about));
    json_t *first = json_array();
    for (int i = 0; i < about.shown; i++) json_array_append_new(first, json_integer(about.first[i]));
    return json_print_line(json_pack(
        "{s:s, s:i, s:o, s:o, s:I, s:o, s:I, s:s, s:i, s:i, s:I, s:o, s:o, s:o*}", "format", about.format,
        "files", about.files, "first_file", json_bytes(about.first_file, strlen(about.first_file)),
        "last_file", json_bytes(about.last_file, strlen(about.last_file)), "tokens", (json_int_t)about.tokens,
        "documents", about.documents < 0 ? json_null() : json_integer(about.documents), "bytes",
        (json_int_t)about.bytes, "stored_as", about.stored_as, "smallest_token", (int)about.min,
        "largest_token", (int)about.max, "examined_tokens", (json_int_t)about.seen, "first", first,
        "counted_tokens", about.counted < 0 ? json_null() : json_integer(about.counted), "left_over",
        settings->length < 1
            ? NULL
            : json_pack("{s:I, s:f, s:f, s:f}", "length", (json_int_t)settings->length, "packed", left.packed,
                        "alone", left.alone, "classes", left.classes)));
}

static int show_file(const struct settings *settings, const struct options *options) {
    const struct token_format *format;
    struct path_list files;
    struct tokens *tokens;
    TRY(name_files(settings, options, &files, &format));
    TRY(tokens_open_list(&files, format, &tokens));
    int status = settings->json ? show_json(settings, tokens) : show_stream(settings, tokens);
    tokens_close(tokens);
    return status;
}

/* One line a sample: its number, a colon and its length + 1 tokens. */
static int print_samples(struct sampler *sampler, const struct settings *settings) {
    long width = settings->length + 1;
    int32_t *row = malloc((size_t)width * sizeof *row);
    if (!row) return gdn_fail(GDN_INTERNAL, "no memory for a sample of %ld tokens", width);
    int status = GDN_OK;
    for (long i = settings->first; i < settings->first + settings->count && !status; i++) {
        if ((status = sampler_read(sampler, i, 1, MARK_TOKEN, row))) break;
        printf("%ld:", i);
        for (long t = 0; t < width; t++) printf(" %d", row[t] & MARK_TOKEN);
        printf("\n");
    }
    free(row);
    return status ? status : commands_finish_printing();
}

static int sample_file(const struct settings *settings, const struct options *options) {
    TRY(options_need(settings->length >= 1, "gdn data sample", "--length"));
    TRY(options_need(settings->first >= 0, "gdn data sample", "--first"));
    TRY(options_need(settings->count >= 1, "gdn data sample", "--count"));
    const struct token_format *format;
    struct sampler_source source = {.weight = 1};
    TRY(name_files(settings, options, &source.files, &format));
    struct sampler_options wanted = {
        .sources = &source,
        .num_sources = 1,
        .format = format,
        .shuffle = settings->shuffle,
        .seed = settings->seed,
        .length = settings->length,
        .from = 0,
        .to = 1,
    };
    struct sampler *sampler;
    TRY(sampler_open(&wanted, &sampler));
    int status = print_samples(sampler, settings);
    sampler_close(sampler);
    return status;
}

static char to_read[3 * FORMAT_LIST]; /* of --help: names the formats */

static const struct argp_option show_options[] = {
    {"format", KEY_FORMAT, "FORMAT", 0, to_read, 0},
    {"length", KEY_LENGTH, "S", 0,
     "Also tell what samples of S tokens would leave empty, by how documents are put into them", 0},
    {"json", KEY_JSON, NULL, 0, "Print one object as JSON, on one line", 0},
    {0},
};

static const struct command_line show_line = {
    .arguments = "PATH...",
    .doc = "Print what a token file holds.\v"
           "PATH is a file or a quoted pattern such as 'shard_*.bin', whose files are joined in the order of "
           "their names. Printed are the numbers of files, tokens and documents, the stored type, the least "
           "and greatest token (of a sample, in large files) and the first tokens, as text too where they "
           "are bytes. The greatest token tells the least model.vocab_size.\n\n"
           "Example: gdn data show 'fineweb_train_*.bin'",
    .own = show_options,
    .take = take_option,
    .min = 1,
    .max = -1,
};

static const struct argp_option sample_options[] = {
    {"format", KEY_FORMAT, "FORMAT", 0, to_read, 0},
    {"length", KEY_LENGTH, "S", 0,
     "As train.sequence_length: a sample has S + 1 tokens, the last being the last target", 0},
    {"order", KEY_ORDER, "ORDER", 0, "As data.order: sequential (the default) or shuffle", 0},
    {"seed", KEY_SEED, "N", 0, "The shuffle's seed, as train.seed (default 0)", 0},
    {"first", KEY_FIRST, "I", 0,
     "Number of the first sample to print, from 0; numbers past the data go on into the next epoch", 0},
    {"count", KEY_COUNT, "N", 0, "How many samples to print", 0},
    {0},
};

static const struct command_line sample_line = {
    .arguments = "PATH...",
    .doc = "Print samples just as training reads them.\v"
           "Sample i of a sequential run is tokens iS to iS + S, so that neighbours share one token; a "
           "shuffled run takes the same pieces in an order computed from seed and epoch. A line is a "
           "sample's number, a colon and its tokens. Step k of training reads samples k * batch_size and the "
           "batch_size - 1 after it.\n\n"
           "Example: gdn data sample --format text --length 32 --order shuffle --seed 1 --first 0 --count 4 "
           "corpus.txt",
    .own = sample_options,
    .take = take_option,
    .min = 1,
    .max = -1,
};

static int run(const struct command_line *line,
               int (*command)(const struct settings *, const struct options *), int argc, char **argv) {
    char list[FORMAT_LIST], never[FORMAT_LIST];
    snprintf(to_read, sizeof to_read, "What the files are: %s; default: as the first file looks, %s never",
             token_format_list(FORMATS_EXPLAINED, " or ", list),
             token_format_list(FORMATS_NEVER_FOUND, " or ", never));
    struct settings settings = {.length = -1, .first = -1, .count = -1};
    struct options options;
    int status = options_parse(line, argc, argv, &options, &settings);
    if (!status && !options.done) status = command(&settings, &options);
    options_free(&options);
    return status;
}

int data_show(int argc, char **argv) {
    return run(&show_line, show_file, argc, argv);
}

int data_sample(int argc, char **argv) {
    return run(&sample_line, sample_file, argc, argv);
}
