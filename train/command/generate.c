/* gdn generate: text from a prompt, one token at a time. One process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dist/mesh/mesh.h"
#include "kernels/base/status.h"
#include "model/model.h"
#include "train/command/commands.h"
#include "train/command/json_line.h"
#include "train/command/options.h"
#include "train/command/saved_model.h"
#include "train/command/speech.h"
#include "train/command/writing.h"

enum key {
    KEY_PROMPT = 256,
    KEY_IDS,
    KEY_LENGTH,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_SEED,
    KEY_CONTEXT,
    KEY_DEVICE,
    KEY_FORMAT,
    KEY_DATA,
    KEY_EXIT,
    KEY_SPECULATE,
    KEY_DRAFT,
    KEY_STATS,
    KEY_JSON
};

struct settings {
    const char *prompt;
    bool ids, json;
    long length, context, seed; /* context 0: the sequence length of training */
    struct sampling sampling;
    char device[40];  /* "device=…", as an override; "": what this machine has */
    char format[64];  /* "data.format=…"; "": the run's */
    const char *data; /* a file that the model reads; NULL: none */
    struct leaving leaving;
    struct speculation speculation;
    bool stats;
};

static int take_option(int key, const char *value, void *input) {
    struct settings *s = input;
    switch (key) {
    case KEY_PROMPT:
        s->prompt = value;
        return GDN_OK;
    case KEY_IDS:
    case KEY_JSON:
    case KEY_STATS:
        *(key == KEY_IDS ? &s->ids : key == KEY_JSON ? &s->json : &s->stats) = true;
        return GDN_OK;
    case KEY_EXIT:
        return leaving_read(value, &s->leaving);
    case KEY_SPECULATE:
        return options_long("--speculate", value, 1, MOST_DRAFTS, &s->speculation.drafts);
    case KEY_DRAFT:
        return options_long("--draft", value, 0, INT32_MAX, &s->speculation.layer);
    case KEY_LENGTH:
        return options_long("--length", value, 1, INT32_MAX, &s->length);
    case KEY_TEMPERATURE:
        return options_real("--temperature", value, 0, 1e6, &s->sampling.temperature);
    case KEY_TOP_K:
        return options_long("--top-k", value, 0, INT32_MAX, &s->sampling.top_k);
    case KEY_TOP_P:
        return options_real("--top-p", value, 0, 1, &s->sampling.top_p);
    case KEY_SEED:
        return options_long("--seed", value, 0, INT64_MAX, &s->seed);
    case KEY_DEVICE:
        snprintf(s->device, sizeof s->device, "device=%s", value);
        return GDN_OK;
    case KEY_FORMAT:
        snprintf(s->format, sizeof s->format, "data.format=%s", value);
        return GDN_OK;
    case KEY_DATA:
        TRY(options_path("--data", value, &s->data));
        if (access(value, R_OK))
            return gdn_fail(GDN_INPUT, "--data: %s cannot be read: %s", value, strerror(errno));
        return GDN_OK;
    default:
        return options_long("--context", value, 2, INT32_MAX, &s->context);
    }
}

static const struct argp_option own[] = {
    {"prompt", KEY_PROMPT, "TEXT", 0,
     "What the text starts with (default: a new document; only where it is known which token stands between "
     "documents)",
     0},
    {"ids", KEY_IDS, NULL, 0, "The prompt and the output are token ids, separated by blanks, not text", 0},
    {"length", KEY_LENGTH, "N", 0,
     "Tokens to add (default 256); the end of a document ends the text earlier, but not with --ids", 0},
    {"temperature", KEY_TEMPERATURE, "X", 0,
     "0: always the likeliest token; 1 (default): as the model has it; "
     "above: more surprising",
     0},
    {"top-k", KEY_TOP_K, "K", 0, "Choose among the K likeliest tokens only (default 0: all)", 0},
    {"top-p", KEY_TOP_P, "P", 0,
     "Choose among the likeliest tokens that together have probability P (default 1: all)", 0},
    {"seed", KEY_SEED, "N", 0, "Same seed, same text (default 1)", 0},
    {"context", KEY_CONTEXT, "N", 0,
     "Tokens that the model looks back on at most (default: train.sequence_length of its training)", 0},
    {"device", KEY_DEVICE, "NAME", 0, "cpu or cuda (default: auto, a GPU where there is one)", 0},
    {"format", KEY_FORMAT, "FORMAT", 0,
     "What tokens are: text where they are bytes (default: the run's data.format)", 0},
    {"data", KEY_DATA, "FILE", 0,
     "A file that --format is that of, as for gdn eval; what goes on is the prompt, not the file", 0},
    {"exit", KEY_EXIT, "P[,P...]", 0,
     "Leave a token's layers at the first exit (model.exit) where the likeliest next token has at least the "
     "probability P: one for all exits, or one each, as gdn eval --exits finds them; above 1: not at this "
     "one",
     0},
    {"speculate", KEY_SPECULATE, "K", 0,
     "Draft up to K tokens at an exit (model.exit) and verify them with all layers at once: tokens are those "
     "of all "
     "layers, or as likely, and faster where drafts are right (cpu)",
     0},
    {"draft", KEY_DRAFT, "LAYER", 0, "The layer whose exit drafts (default: the first that has one)", 0},
    {"stats", KEY_STATS, NULL, 0,
     "Then say on standard error how fast that was, and of how many layers, or how many drafts were accepted",
     0},
    {"json", KEY_JSON, NULL, 0, "Print one object as JSON, on one line, once the text is whole", 0},
    {0},
};

static const struct command_line line = {
    .arguments = "CHECKPOINT",
    .doc =
        "Continue a prompt with a trained model. CHECKPOINT is a run directory, which stands for the newest "
        "checkpoint in it, its checkpoints/best or a step_N directory there, or a checkpoint.h5.\v"
        "Printed are the prompt and, token by token, what the model adds; with --ids what it adds alone. A "
        "checkpoint carries the tokenizer "
        "that "
        "training had (data.tokenizer; bytes, of text without one). Of one that carries none --ids is "
        "needed, or "
        "--set data.tokenizer=PATH.\n\n"
        "With --json one line is printed instead: an object of prompt (as given), text (what was added) and "
        "ids (the same as tokens). Bytes that are no UTF-8 are U+FFFD in text, which is null where "
        "no tokenizer is known.\n\n"
        "With --exit the tokens of the prompt go through all layers but for the last of them; of layers that "
        "a "
        "token leaves out later tokens read keys and values that are made of its state at the exit.\n\n"
        "With --speculate the text at --temperature 0 is that without it. Others are drawn from the same "
        "distribution, of "
        "the same temperature, top-k and top-p, but by other random numbers: another text for the same "
        "seed.\n\n"
        "Examples:\n"
        "  gdn generate runs/tiny --prompt 'It was ' --temperature 0.8 --top-k 40\n"
        "  gdn eval runs/exits --exits\n"
        "  gdn generate runs/exits --prompt 'It was ' --exit 0.453,0.394,0.323 --stats\n"
        "  gdn generate runs/exits --prompt 'It was ' --speculate 3 --draft 2 --stats\n"
        "  gdn generate runs/tokens --ids --prompt '17 4 256' --length 20 --json",
    .common = OPTION_SET,
    .own = own,
    .take = take_option,
    .min = 1,
    .max = 1,
};

static int print_token(const struct settings *s, struct speech *speech, int32_t token) {
    size_t length;
    const char *bytes = speech_is_text(speech) ? token_bytes_at(&speech->known.bytes, token, &length) : NULL;
    if (s->json) return GDN_OK; /* printed at the end, whole */
    if (s->ids)
        printf("%d ", token);
    else if (!speech->known.carried.file) /* bytes, as they are */
        fwrite(bytes, 1, length, stdout);
    else
        TRY(utf8_stream_put(&speech->stream, bytes, length, stdout));
    fflush(stdout); /* people watch it being written */
    return GDN_OK;
}

static int print_json(const struct settings *s, const struct speech *speech, const struct sequence *text) {
    const int32_t *added = text->token + text->given;
    json_t *ids = json_array();
    for (long i = 0; i < text->count - text->given; i++)
        if (json_array_append_new(ids, json_integer(added[i]))) { /* also without `ids` */
            json_decref(ids);
            return gdn_fail(GDN_INTERNAL, "out of memory for the output as JSON");
        }
    return json_print_line(json_pack(
        "{s:o, s:o, s:o}", "prompt", json_bytes(s->prompt, strlen(s->prompt)), "text",
        speech_is_text(speech) ? speech_json(speech, added, text->count - text->given) : json_null(), "ids",
        ids));
}

/* Whether a text ends with a token: another document's begins. */
static bool ends_text(const struct settings *s, const struct speech *speech, int32_t token) {
    return !s->ids && token == speech->known.bytes.separator;
}

/* The text's tokens up to its end. */
static int write_tokens(const struct settings *s, struct writing *w, struct speech *speech) {
    int32_t chosen[MOST_DRAFTS + 1];
    for (long left = s->length, count; left > 0; left -= count) {
        count = writing_choose(w, left, chosen);
        for (long j = 0; j < count; j++) {
            if (ends_text(s, speech, chosen[j])) return GDN_OK;
            w->text->token[w->text->count++] = chosen[j];
            TRY(print_token(s, speech, chosen[j]));
        }
    }
    return GDN_OK;
}

static int write_text(const struct settings *s, struct writing *w, struct speech *speech) {
    if (!s->ids && !s->json) fputs(s->prompt, stdout);
    writing_begin(w);
    TRY(write_tokens(s, w, speech));
    const long added = w->text->count - w->text->given;
    if (!s->json) {
        TRY(utf8_stream_end(&speech->stream, stdout));
        putchar('\n');  /* main finds out whether all could be written */
        fflush(stdout); /* before what is said of it */
    }
    if (s->stats && s->speculation.drafts)
        speculation_print(&w->speculation, added);
    else if (s->stats)
        leaving_print(&w->leaving, added, w->model->num_layers);
    return s->json ? print_json(s, speech, w->text) : GDN_OK;
}

static int generate(struct settings *s, const struct saved_model *saved, struct speech *speech,
                    const struct ops *ops) {
    const struct config *c = &saved->config;
    if (s->speculation.drafts && s->leaving.count)
        return gdn_fail(
            GDN_INPUT,
            "--speculate has all layers verify drafts, and with --exit tokens leave some out: give "
            "one of the two");
    if (s->speculation.layer >= 0 && !s->speculation.drafts)
        return gdn_fail(GDN_INPUT, "--draft says where tokens of --speculate are drafted: add --speculate K");
    TRY(leaving_prepare(&c->model, saved->path, &s->leaving));
    if (s->data && !s->format[0])
        return gdn_fail(GDN_INPUT, "--data %s tells what tokens are by its format: add --format", s->data);
    if (!s->ids && !speech_is_text(speech))
        return gdn_fail(
            GDN_INPUT,
            "%s carries no tokenizer, so its tokens are not known to be text: use --ids, or --set "
            "data.tokenizer=PATH of the tokenizer.json that has made them",
            saved->path);
    long context = s->context ? s->context : c->train.sequence_length;
    if (context < 2) context = 2; /* the newest half must be a token at least */
    TRY(speculation_prepare(&c->model, ops, saved->path, &s->speculation));
    struct decoder *decoder = NULL;
    struct edge_set active = {0};
    struct sequence text = {
        .token = malloc((size_t)(speech_prompt_room(s->prompt) + s->length + 1) * sizeof *text.token)};
    struct candidate *work = malloc((size_t)c->model.vocab_size * sizeof *work);
    int status =
        text.token && work ? GDN_OK : gdn_fail(GDN_INTERNAL, "out of memory for %ld tokens", s->length);
    if (!status) status = speech_read_prompt(s->prompt, s->ids, saved, speech, &text);
    if (!status)
        status = gdn_fail_in(decoder_create(&c->model, &saved->table, &saved->state, ops, context,
                                            speculation_rows(&s->speculation), &decoder),
                             "room for --context %ld", context);
    if (!status) status = saved_model_active(saved, &active);
    struct writing writing = {.model = &c->model,
                              .decoder = decoder,
                              .active = &active,
                              .text = &text,
                              .by = {&s->sampling, s->seed, 0, work},
                              .context = context,
                              .leaving = s->leaving,
                              .speculation = s->speculation};
    if (!status) status = write_text(s, &writing, speech);
    speculation_free(&s->speculation);
    edge_set_free(&active);
    decoder_free(decoder);
    free(text.token);
    free(work);
    return status;
}

/* With --set, and what other options set behind it. */
static int load(const struct settings *s, const struct options *options, const struct mesh *mesh,
                struct saved_model *saved) {
    int count = options->num_set;
    const char **set = calloc((size_t)count + 2, sizeof *set);
    if (!set) return gdn_fail(GDN_INTERNAL, "out of memory for the options");
    for (int i = 0; i < count; i++) set[i] = options->set[i];
    if (s->device[0]) set[count++] = s->device;
    if (s->format[0]) set[count++] = s->format;
    int status = saved_model_load(mesh, options->argument[0], (char *const *)set, count, saved);
    free(set);
    return status;
}

int cmd_generate(int argc, char **argv) {
    struct settings s = {.prompt = "",
                         .length = 256,
                         .seed = 1,
                         .sampling = {.temperature = 1, .top_p = 1},
                         .speculation = {.layer = -1}};
    struct options options;
    int status = options_parse(&line, argc, argv, &options, &s);
    if (!status && !options.done) {
        struct saved_model saved;
        struct mesh mesh = mesh_alone();
        status = load(&s, &options, &mesh, &saved);
        if (!status) {
            const struct ops *ops;
            status = saved_model_place(&saved, &mesh, stderr, &ops);
            struct speech speech = {.words = NULL};
            if (!status) status = speech_open(&saved, &speech);
            if (!status) status = generate(&s, &saved, &speech, ops);
            speech_close(&speech);
            saved_model_free(&saved);
        }
    }
    options_free(&options);
    return status;
}
