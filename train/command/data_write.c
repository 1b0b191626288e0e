/* gdn data write and gdn data tokenizer: text becomes token files and tokenizers. One process, without MPI,
 * but for `write --tokenizer` where a launcher has started it. */
#include <stdio.h>

#include "data/documents/documents.h"
#include "data/documents/train.h"
#include "data/format.h"
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/command/data.h"
#include "train/command/options.h"
#include "train/records/reading.h"
#include "train/run/ranks.h"

enum key { KEY_FORMAT = 256, KEY_OUTPUT, KEY_TOKENIZER, KEY_SEPARATOR, KEY_FIELD, KEY_MESSAGES, KEY_VOCAB };

struct settings {
    const struct token_format *format; /* this and the next five: NULL where not given */
    const char *output, *tokenizer, *separator, *field, *messages;
    long vocab; /* −1: not given */
};

static int take_option(int key, const char *value, void *input) {
    struct settings *settings = input;
    switch (key) {
    case KEY_FORMAT:
        return options_format(value, &settings->format);
    case KEY_OUTPUT:
        settings->output = value;
        return GDN_OK;
    case KEY_TOKENIZER:
        return options_path("--tokenizer", value, &settings->tokenizer);
    case KEY_SEPARATOR:
        settings->separator = value;
        return GDN_OK;
    case KEY_FIELD:
        settings->field = value;
        return GDN_OK;
    case KEY_MESSAGES:
        settings->messages = value;
        return GDN_OK;
    default: /* KEY_VOCAB */
        return options_long("--vocab", value, TRAIN_MIN_VOCAB, TRAIN_MAX_VOCAB, &settings->vocab);
    }
}

static void tell_progress(void *input, long done, long all) {
    reading_tell(input, done, all);
}

static void tell_merged(void *input, long done, long all) {
    reading_tell_merged(input, done, all);
}

static int agree(void *input, int status) {
    return mesh_agree(input, status);
}

static int broadcast(void *input, void *bytes, long count) {
    return mesh_broadcast(input, bytes, count);
}

static int wait_for_all(void *input, void (*tick)(void *), void *tick_input) {
    return mesh_wait(input, tick, tick_input);
}

static void abort_all(void *input, int status) {
    ranks_abort(input, status);
}

static int print_written(const struct settings *settings, const struct documents_written *written) {
    if (!written->separated)
        fprintf(
            stderr,
            "gdn: note: no token stands between documents: there is no --separator, and no eos_token in a "
            "tokenizer_config.json beside %s\n",
            settings->tokenizer);
    printf("documents  %ld\nbytes      %ld\ntokens     %ld\n", written->documents, written->bytes,
           written->tokens);
    return commands_finish_printing();
}

/* `mesh`: NULL where no launcher has started this. */
static int write_documents(const struct settings *settings, const struct options *options,
                           struct mesh *mesh) {
    struct reading_progress progress;
    struct carried tokenizer;
    struct documents_written written;
    struct documents_ranks ranks = {.rank = mesh ? mesh->rank : 0,
                                    .size = mesh ? mesh->size : 1,
                                    .input = mesh,
                                    .agree = agree,
                                    .broadcast = broadcast,
                                    .wait = wait_for_all,
                                    .abort = abort_all};
    struct documents_options wanted = {
        .option = "--output",
        .output = settings->output,
        .format = settings->format,
        .tokenizer = &tokenizer,
        .separator = settings->separator,
        .field = settings->field      ? settings->field
                 : settings->messages ? "messages"
                                      : "text",
        .messages = settings->messages,
        .files = {options->argument, options->num_arguments},
        .progress = tell_progress,
        .input = &progress,
        .ranks = mesh ? &ranks : NULL,
    };
    if (mesh) TRY(ranks_share_cores(mesh, mesh->rank ? NULL : stderr));
    reading_begin(&progress, stderr);
    int status = carried_read(settings->tokenizer, &tokenizer);
    if (mesh) status = mesh_agree(mesh, status);
    if (!status) status = documents_write(&wanted, &written);
    carried_free(&tokenizer);
    reading_end(&progress);
    TRY(status);
    return ranks.rank ? GDN_OK : print_written(settings, &written);
}

static int write_on_ranks(const struct settings *settings, const struct options *options) {
    struct mesh mesh;
    if (commands_launched_rank() < 0) return write_documents(settings, options, NULL);
    int status = ranks_begin(&mesh);
    if (!status) status = write_documents(settings, options, &mesh);
    return ranks_end(&mesh, status);
}

static int refuse_without(const char *value, const char *option) {
    if (!value) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s is of documents that a tokenizer takes; name it by --tokenizer", option);
}

static int write_file(const struct settings *settings, const struct options *options) {
    TRY(options_need(settings->format, "gdn data write", "--format"));
    TRY(options_need(settings->output, "gdn data write", "--output"));
    if (settings->tokenizer) return write_on_ranks(settings, options);
    TRY(refuse_without(settings->separator, "--separator"));
    TRY(refuse_without(settings->field, "--field"));
    TRY(refuse_without(settings->messages, "--messages"));
    if (commands_launched_rank() > 0) return GDN_OK; /* rank 0 writes bytes alone */
    return tokens_write(settings->output, settings->format, (const char *const *)options->argument,
                        options->num_arguments);
}

static int train_tokenizer(const struct settings *settings, const struct options *options) {
    TRY(options_need(settings->vocab >= 0, "gdn data tokenizer", "--vocab"));
    TRY(options_need(settings->output, "gdn data tokenizer", "--output"));
    struct reading_progress progress;
    reading_begin(&progress, stderr);
    struct tokenizer_training training = {
        .output = settings->output,
        .field = settings->field ? settings->field : "text",
        .files = {options->argument, options->num_arguments},
        .vocab = settings->vocab,
        .progress = tell_progress,
        .merged = tell_merged,
        .input = &progress,
    };
    long vocab;
    int status = tokenizer_train(&training, &vocab);
    reading_end(&progress);
    TRY(status);
    if (vocab < settings->vocab)
        fprintf(stderr, "gdn: note: no pair of tokens stands twice any more: %ld tokens instead of %ld\n",
                vocab, settings->vocab);
    printf("tokens     %ld\n", vocab);
    return commands_finish_printing();
}

static char to_write[2 * FORMAT_LIST]; /* of --help: names the formats */

static const struct argp_option write_options[] = {
    {"format", KEY_FORMAT, "FORMAT", 0, to_write, 0},
    {"output", KEY_OUTPUT, "PATH", 0,
     "The file to write (megatron: PATH.bin and PATH.idx); replaced if it exists", 0},
    {"tokenizer", KEY_TOKENIZER, "PATH", 0,
     "A tokenizer.json of Hugging Face's library, with a byte-pair model, or 'bytes'; files may then be "
     ".jsonl, and .gz or .zst",
     0},
    {"separator", KEY_SEPARATOR, "TOKEN", 0,
     "The token behind each document; default: eos_token of a tokenizer_config.json beside the tokenizer, "
     "else none",
     0},
    {"field", KEY_FIELD, "NAME", 0,
     "Where in a line of JSON the document's text is (default: text), or its messages (messages)", 0},
    {"messages", KEY_MESSAGES, "TEMPLATE", 0,
     "Lines of JSON are conversations, [{role, content}, ...], written as by the template chatml or llama3; "
     "only the assistant's answers count in the loss (hdf5)",
     0},
    {0},
};

static const struct command_line write_line = {
    .arguments = "FILE...",
    .doc =
        "Write text files as one token file.\v"
        "Without --tokenizer a token is a byte, 1 to 255, and 256 stands between documents; each FILE is "
        "a document. The tokens are kept in two bytes each. The output appears complete or not at all.\n\n"
        "Text need not be written to be trained on (data.format: text reads it as it is); a token file is "
        "for other programs, or for keeping many documents in one file.\n\n"
        "With --tokenizer, a document becomes the tokenizer's tokens of its text and one separator behind "
        "them. A text file is a document; of .jsonl each line is one. Documents are encoded on all "
        "threads (OMP_NUM_THREADS) of all ranks (under mpirun or srun), and the output is the same for any "
        "number of them. Tokens have four bytes each where the vocabulary is larger than 65536.\n\n"
        "What is done is kept in the folder .NAME.pieces beside the output until that is there: after a kill "
        "or a failure the same command goes on. Lines of .jsonl are shared out among ranks; a text or a "
        "packed file is one rank's.\n\n"
        "Example: gdn data write --format hdf5 --output corpus.h5 a.txt b.txt\n"
        "Example: gdn data write --tokenizer tokenizer.json --format hdf5 --output corpus.h5 "
        "docs.jsonl.zst\n"
        "Example: mpirun -n 16 gdn data write --tokenizer tokenizer.json --format megatron --output corpus "
        "docs-*.jsonl\n"
        "Example: gdn data write --tokenizer tokenizer.json --messages chatml --format hdf5 --output "
        "talks.h5 "
        "talks.jsonl",
    .own = write_options,
    .take = take_option,
    .min = 1,
    .max = -1,
};

static const struct argp_option tokenizer_options[] = {
    {"vocab", KEY_VOCAB, "N", 0, "How many tokens: <|endoftext|>, 256 bytes, and merges", 0},
    {"output", KEY_OUTPUT, "PATH", 0, "The tokenizer.json to write; replaced if it exists", 0},
    {"field", KEY_FIELD, "NAME", 0, "Where in a line of JSON the document's text is (default: text)", 0},
    {0},
};

static const struct command_line tokenizer_line = {
    .arguments = "FILE...",
    .doc = "Train a tokenizer on text.\v"
           "Writes a byte-level byte-pair tokenizer as Hugging Face's library has it, for 'gdn data write "
           "--tokenizer'. FILEs are text, or lines of JSON (.jsonl), each also packed (.gz, .zst). Words are "
           "counted on all threads, and the tokenizer is the same for any number of them.\n\n"
           "Its token <|endoftext|> is for standing between documents. Where PATH is called tokenizer.json "
           "and no "
           "tokenizer_config.json lies beside it, one is written, which says so to whoever uses the "
           "tokenizer. Of a "
           "PATH of another name 'gdn data write' is told by --separator '<|endoftext|>'.\n\n"
           "Example: gdn data tokenizer --vocab 4096 --output tok/tokenizer.json corpus/*.txt",
    .own = tokenizer_options,
    .take = take_option,
    .min = 1,
    .max = -1,
};

static int run(const struct command_line *line,
               int (*command)(const struct settings *, const struct options *), int argc, char **argv) {
    struct settings settings = {.vocab = -1};
    struct options options;
    int status = options_parse(line, argc, argv, &options, &settings);
    if (!status && !options.done) status = command(&settings, &options);
    options_free(&options);
    return status;
}

int data_write(int argc, char **argv) {
    char list[FORMAT_LIST];
    snprintf(to_write, sizeof to_write, "What to write: %s",
             token_format_list(FORMATS_WRITTEN, " or ", list));
    return run(&write_line, write_file, argc, argv);
}

int data_tokenizer(int argc, char **argv) {
    return run(&tokenizer_line, train_tokenizer, argc, argv);
}
