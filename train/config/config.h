/* The run's configuration: read from YAML, overridden by --set, checked, resolved and written back. */
#ifndef GDN_CONFIG_H
#define GDN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "data/paths.h"
#include "dist/layout/axes.h"
#include "kernels/ops.h" /* enum precision */
#include "model/params/config.h"

enum decay_schedule { DECAY_CONSTANT, DECAY_LINEAR };
enum lr_schedule { LR_COSINE, LR_LINEAR, LR_CONSTANT, LR_WSD };
enum decay_shape { WSD_LINEAR, WSD_SQRT };
/* Policies as in model/model.h, or chosen by memory; of connections also: as their layers. */
enum recompute_choice { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_AUTO, RECOMPUTE_SAME };
/* As the rows of train/optimizer/rules.c; what of q, k and v is a matrix to Muon (model.md, 6). */
enum activations_choice { ACTIVATIONS_FP32, ACTIVATIONS_BF16 };
enum optimizer_choice { OPTIMIZER_ADAMW, OPTIMIZER_MUON, OPTIMIZERS };
enum muon_split { MUON_WHOLE, MUON_QKV, MUON_HEAD };
enum data_order { ORDER_SHUFFLE, ORDER_SEQUENTIAL };
enum data_documents { DOCUMENTS_JOIN, DOCUMENTS_MASK };
enum data_packing { PACKING_STREAM, PACKING_BEST_FIT };
enum spike_action { SPIKE_SKIP, SPIKE_REWIND, SPIKE_REPORT };
/* While training waits, or while it goes on, from a copy; or that where the copy fits beside all else. */
enum saving { SAVE_FOREGROUND, SAVE_BACKGROUND, SAVE_AUTO };
enum device_choice { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA, DEVICE_EMULATED };

enum { RAMP_MAX = 32 };        /* entries of train.batch_ramp */
enum { RAMP_STEP, RAMP_SIZE }; /* of an entry: steps done before, sequences from then on */

struct muon_config {
    int split; /* enum muon_split */
    int steps; /* of Newton and Schulz */
    double momentum;
};

/* Settings of the tensors of which `match` is the name, or a pattern of it (train/optimizer/groups.h). */
enum { GROUPS_MAX = 32, GROUP_MATCH = 128 };
struct parameter_group {
    char match[GROUP_MATCH];                     /* "layers.*.delta.*.mix": * is any characters */
    double lr_scale, weight_decay, beta1, beta2; /* NAN: as they would be without the group */
};

/* In the order of train.prune's words. */
enum pruning_choice { PRUNING_NONE, PRUNING_CONTRIBUTION, PRUNING_FIRST_ORDER, PRUNING_LEAVE_ONE_OUT };
enum pruning_rule { PRUNING_BUDGET, PRUNING_THRESHOLD, PRUNING_ADAPTIVE };

/* Connections that go in training (train/prune/pruning.h). */
struct prune_config {
    int by;               /* enum pruning_choice: what is important; none: off */
    int rule;             /* enum pruning_rule: how many go */
    double keep;          /* part of all that is left at the end, or at least */
    double threshold;     /* of an importance */
    long begin, end;      /* steps before which the first and the last may go */
    long interval;        /* and between, every so many */
    double regrow;        /* part of those left that are, at begin, ones that had gone; none at the end */
    long batches;         /* of validation data, that leave_one_out measures on */
};

struct train_config {
    long steps;
    int batch_size; /* sequences of one optimiser step over the whole mesh; with a ramp its last */
    long batch_ramp[RAMP_MAX][2]; /* batches of other sizes before (train/config/batch.h) */
    int num_ramp;                 /* 0: all have batch_size */
    int micro_batch_size;         /* 0: the smallest batch / data ranks */
    int sequence_length;
    double lr, min_lr_ratio;
    long warmup_steps, warmup_tokens; /* tokens 0: by steps */
    double beta1, beta2, adam_eps, weight_decay, grad_clip, z_loss;
    struct parameter_group groups[GROUPS_MAX];
    int num_groups;
    bool cautious_decay; /* it never works against the update (model.md, 6) */
    int decay_schedule;  /* enum decay_schedule */
    int optimizer;       /* enum optimizer_choice */
    struct muon_config muon;
    uint64_t seed;
    int schedule;                               /* enum lr_schedule */
    double decay_fraction;                      /* of steps, at the end of wsd */
    int decay_shape;                            /* enum decay_shape, of wsd */
    bool graphs;                                /* passes are recorded and repeated */
    int precision;                              /* enum precision */
    int activations;                            /* enum activations_choice */
    int recompute;                              /* enum recompute_choice of layers */
    int recompute_delta;                        /* of their delta connections */
    int recompute_every, recompute_delta_every; /* layers 0, n, 2n, … only; delta 0: as recompute_every */
    double memory;                              /* GiB that a rank may use; 0: what its machine has */
    double compress_sources;                    /* part of the full rank, 0: off */
    struct prune_config prune;
    long eval_interval, eval_batches, gate_interval, noise_interval,
        stop_at;       /* 0: off; eval_batches 0: all */
    double time_limit; /* minutes of one start; 0: what Slurm says */
};

/* In the order of mesh.schedule's words. */
enum pipeline_schedule { SCHEDULE_1F1B, SCHEDULE_ZERO_BUBBLE, SCHEDULE_ZERO_BUBBLE_V };

struct mesh_config {
    int size[AXES];           /* ranks on each axis; data 0: all ranks left over */
    int schedule;             /* enum pipeline_schedule */
    double schedule_memory;   /* GiB that training may take where gradients of weights wait; 0: as usual */
    int interleave;           /* chunks of layers a pipeline rank has, but in a V */
    int delta;                /* enum delta_split (dist/layout/layout.h) */
    bool sequence_parallel;   /* norms and residual sums on 1/tensor of the tokens */
    int transport;            /* enum mesh_transport (dist/mesh/mesh.h) */
    int tensor_pieces;        /* of products whose sums over tensor ranks travel beside the next piece */
    bool overlap;             /* gradient sums during the last micro-batch's backward */
    bool narrow_sources;      /* sources cross stages as projections where those are fewer bytes */
    int sum_group;            /* neighbouring copies that sum gradients among themselves first; 1: none do */
    long bucket;              /* elements of a gradient bucket */
    long small;               /* tensors of fewer elements on a rank are all-reduced, not sharded */
    double compress_boundary; /* part of the full rank, 0: off */
    int wire;                 /* enum wire (kernels/base/wire.h) */
    int context_exchange;     /* a row of the table of model/mixer/exchange.h */
    bool compress_feedback;   /* what compression drops of a gradient joins the next micro-batch's */
};

/* Chunks of layers that a pipeline rank has. */
static inline int mesh_chunks(const struct mesh_config *mesh) {
    return mesh->schedule == SCHEDULE_ZERO_BUBBLE_V ? 2 : mesh->interleave;
}

/* What the loss on data.validation, or on the part held out of the training data, is called. */
#define VALIDATION_NAME "validation"

/* A set of data. */
struct source_config {
    struct path_list path;
    double weight; /* of data.sources; of data.validations without meaning */
    char *name;    /* of data.sources, where it is not given: source_0, source_1 … */
};

struct data_config {
    struct path_list train;            /* empty where `sources` is used */
    struct path_list validation;       /* empty for none */
    double validation_fraction;        /* the last part of the training data, where `validation` is empty */
    struct source_config *validations; /* more sets, beside either of these or without */
    int num_validations;
    struct source_config *sources;
    int num_sources;
    int format;      /* a row of data/format.h */
    char *tokenizer; /* "" for none known: tokens of text are its bytes */
    char *field;     /* where in a line of JSON the text is, or messages */
    int messages;    /* 0, or a template (conversation_template_chosen) */
    char *cache;     /* folder of what a tokenizer has made of text */
    int order;       /* enum data_order */
    int documents;   /* enum data_documents */
    int packing;     /* enum data_packing */
};

struct checkpoint_config {
    long interval;           /* steps; 0: only at the end or a stop */
    double interval_minutes; /* since the last one; 0: off */
    int keep;                /* newest checkpoints kept; 0: all */
    long keep_every;         /* those of every so-many-th step are kept besides; 0: off */
    int asynchronous;        /* enum saving; a run's plan leaves no SAVE_AUTO (train/run/memory.c) */
    int files;               /* enum checkpoint_files (dist/checkpoint/checkpoint.h) */
    char *init_from;         /* "" for none */
};

/* Low-rank factors of connections' differences, written as training goes on. */
struct delta_store_config {
    long interval;             /* steps; 0: off */
    double ratio, tolerance;   /* one of them: part of the full rank, or relative error; the other is 0 */
    int layers[MAX_DISTANCES]; /* of the connections into these layers */
    int num_layers;            /* 0: of all */
    bool required;             /* a store that fails ends the run */
};

/* What finds a run that hangs or ranks that have come apart; seconds and steps, 0: off. */
struct watchdog_config {
    double start, step, checkpoint; /* seconds that such a phase may take */
    long replicas;                  /* steps between comparisons of ranks' copies of the weights */
    double slow;                    /* a rank that computes so many times as long as the median is reported */
};

/* Values that a window of spikes has at least before a step is judged by them. */
enum { SPIKE_MIN = 8 };

/* Steps whose loss or gradient norm is far from what it was before. */
struct spikes_config {
    long window;      /* steps that mean and deviation are taken of; 0: off */
    double threshold; /* deviations from the mean that are a spike */
    int action;       /* enum spike_action */
    long most;        /* spikes in a run; one more ends it */
};

struct monitor_config {
    long interval; /* steps between events `monitor` and writings of metrics.prom; 0: off */
};

struct config {
    struct model_config model;
    struct train_config train;
    struct mesh_config mesh;
    struct data_config data;
    struct checkpoint_config checkpoint;
    struct delta_store_config delta_store;
    struct watchdog_config watchdog;
    struct spikes_config spikes;
    struct monitor_config monitor;
    int device; /* enum device_choice */
};

/* What sets members that no key does, in every configuration before its keys are read: for programs beside
 * gdn, before anything else of the program. There is one such function: the last that is given. */
void config_register(void (*set)(struct config *config));

/* Reads `path`, applies the `count` overrides "KEY=VALUE" in order, fills defaults and checks everything that
 * can be checked without data and ranks (model.md 9; interfaces.md). Not collective. `out` is owned by the
 * caller: config_free. Fails with GDN_INPUT in at most five lines that name every key involved, quote
 * the value, give the line where it is known and say what is allowed. */
int config_load(const char *path, char *const *overrides, int count, struct config *out);

/* The same from YAML text, e.g. of a checkpoint's `config` attribute; `name` stands for the path in
 * messages. */
int config_parse(const char *text, const char *name, char *const *overrides, int count, struct config *out);

/* What of a trained model's configuration was asked for by overrides, rather than used in training. */
struct config_asked {
    bool device, precision, tokenizer;
};

/* The same of a trained model, to use it: the cpu does not go together with another train.precision than fp32
 * only where an override asks for that. */
int config_parse_trained(const char *text, const char *name, char *const *overrides, int count,
                         struct config *out, struct config_asked *asked);

/* Makes the configuration of a checkpoint that of the connections that were left in it, listed as
 * model.delta.edges, where some have gone in training: `text` is its /pruning (train/prune/pruning.h), NULL: nothing
 * changes. Not collective. GDN_INPUT where they are more than can be listed, or the text is none. */
int config_keep_left(struct config *config, const char *text);

/* Whether the data are text, or lines of JSON, whose tokens are bytes and TEXT_SEPARATOR. */
bool config_tokens_are_bytes(const struct config *config);

/* Whether buffers lie on the host, as far as the configuration tells: `auto`, until a device was found, is
 * the host. */
bool config_on_host(const struct config *config);
/* Bytes of the copy of each weight that products read (kernels/ops.h, hold). */
long config_weight_copy(const struct config *config);

/* The device's name, `auto` among them. */
const char *config_device_name(const struct config *config);

/* What training asks of a device, and of how its ranks' buffers travel: GDN_INPUT where it cannot record
 * passes and train.graphs asks for that; and where train.graphs or mesh.tensor_pieces asks for exchanges that
 * are not `staged` [AXES], through host memory. Not collective. */
int config_validate_graphs(const struct config *config, bool records);
int config_validate_staged(const struct config *config, const bool staged[AXES]);

/* What only training needs: data.train or data.sources. GDN_INPUT names both. */
int config_validate_for_training(const struct config *config);

/* The resolved configuration as YAML text, every default written out; free() it. config_parse of it gives the
 * same configuration, digit for digit. */
char *config_text(const struct config *config);

/* Compares what no resume may change (model, seed, data order; the latter means data.order,
 * validation_fraction and the number and weights of sources: files may move). Fails with GDN_INPUT naming
 * each differing key and both values. `saved` is YAML text from a checkpoint. */
int config_match_resume(const struct config *now, const char *saved);

/* A checkpoint to go on from, and what --resume-with asks for. */
struct resume {
    const char *saved;      /* the checkpoint's configuration */
    const char *configured; /* and, where --resume-with has changed that: what the run's configuration said
                               instead of it, YAML text; else NULL */
    int64_t step;           /* of the checkpoint, for messages */
    char *const *changes;   /* [count] "KEY=VALUE" */
    int count;
};

/* What has come of it. resumed_free. */
struct resumed {
    bool changed;     /* something is other than in the checkpoint */
    int length;       /* train.sequence_length there */
    char *configured; /* as above, for later checkpoints */
    char *text;       /* a line for each change, now or before, to be told */
};

/* Makes `now` the configuration that goes on from the checkpoint. Batch size and sequence length are as
 * asked, or else as in the checkpoint, where `now` has what that has, or what the run's configuration had
 * when they were changed; all else must match as config_match_resume says. GDN_INPUT naming each differing
 * key and both values, or what cannot go together. Not collective. */
int config_resume(struct config *now, const struct resume *resume, struct resumed *out);
void resumed_free(struct resumed *resumed);

/* Applies changes "KEY=VALUE" and checks the configuration again as a whole. GDN_INPUT. Not collective. */
int config_change(struct config *now, char *const *changes, int count);

/* Whether all of --resume-with's changes are of keys that may change so. GDN_INPUT names those. */
int config_validate_changes(char *const *changes, int count);

/* The keys on which it depends what a validation loss is. Sets those in `differs` that are not the same in
 * `a` and `b`; others are left as they are. Not collective. */
enum { MEASURE_KEYS = 8 };
extern const char *const measure_key[MEASURE_KEYS];
void config_measured(const struct config *a, const struct config *b, bool differs[MEASURE_KEYS]);

/* Whether a checkpoint was made with another train.optimizer. `saved` is its YAML text. Not collective.
 * GDN_INPUT where that cannot be read. */
int config_other_optimizer(const struct config *now, const char *saved, bool *other);

/* Whether a checkpoint's validation losses have an order with those of `now`, as far as configurations tell:
 * training data that a part is held out of may have moved. `saved` is the checkpoint's YAML text. Not
 * collective. GDN_INPUT where it cannot be read. */
int config_measured_as(const struct config *now, const char *saved, bool *comparable);

/* Compares a rank's configuration with rank 0's, as config_text has it: nothing may differ. Not collective.
 * Fails with GDN_INPUT naming each differing key and both values. */
int config_match_ranks(const struct config *mine, const char *first);

/* Compares the model, but for its connections and rules, with that of other weights, `owner`'s. Fails with
 * GDN_INPUT naming each differing key and both values. */
int config_match_trunk(const struct config *now, const struct config *other, const char *owner);

/* Whether a set of data may be called so: 1 to SET_NAME letters, digits, _ and -. Names are keys of
 * metrics.jsonl and labels of curves. */
enum { SET_NAME = 64 };
bool config_set_name(const char *name);

/* "mix: static, before": an entry of model.rules in short; its form where there are several, and its place.
 * Returns `out`. */
enum { RULE_TEXT = 128 };
const char *config_rule_text(const struct rule_config *rule, char out[RULE_TEXT]);

/* The value of a key ("model.rules") as JSON, or an object of all keys of a section ("model.delta."), of
 * numbers, truth values, words, and lists of them; free(). NULL without memory. */
char *config_json(const struct config *config, const char *path);

/* Prints every key with type, default, and one line of explanation (gdn train --help-config). */
void config_help(FILE *out);

void config_free(struct config *config);

#endif
