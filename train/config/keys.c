#include "train/config/keys.h"

#include <float.h>
#include <limits.h>

#include "data/documents/conversation.h"
#include "data/format.h"
#include "kernels/base/marks.h"
#include "model/delta/aggregate.h"
#include "model/delta/gate.h"
#include "model/mixer/exchange.h"
#include "model/mixer/rotary.h"

/* The type follows from the member, so that a row cannot contradict struct config. */
#define TYPE(owner, member)                                                                                  \
    _Generic(((struct owner *)0)->member,                                                                    \
        int: KEY_INT,                                                                                        \
        long: KEY_LONG,                                                                                      \
        uint64_t: KEY_UNSIGNED,                                                                              \
        double: KEY_REAL,                                                                                    \
        bool: KEY_BOOL,                                                                                      \
        char *: KEY_STRING,                                                                                  \
        struct path_list: KEY_FILES)
#define ROW(member, ...)                                                                                     \
    { #member, TYPE(config, member), offsetof(struct config, member), __VA_ARGS__ }
#define AXIS(name, axis, ...)                                                                                \
    { "mesh." #name, KEY_INT, offsetof(struct config, mesh.size[axis]), __VA_ARGS__ }
#define CHOICE(member, ...)                                                                                  \
    { #member, KEY_WORD, offsetof(struct config, member), __VA_ARGS__ }

#define DROPOUT(name, what)                                                                                  \
    {                                                                                                        \
        "train.dropout." #name, TYPE(config, model.dropout.name),                                            \
            offsetof(struct config, model.dropout.name), "0.0", BELOW_1,                                     \
            .help = "training sets this part of " what " to zero, drawn by seed, step and place"             \
    }

/* Limits. Reals end at float's largest number, since weights and activations are floats; what is divided by
 * or multiplied with them must not vanish there, so "above 0" means a normal float. */
#define FROM(limit) .min = limit, .max = FLT_MAX
#define ABOVE_0 .min = FLT_MIN, .max = FLT_MAX
#define UP_TO_1 .min = 0, .max = 1
#define BELOW_1 .min = 0, .max = 1, .below = true
#define COUNT(limit) .min = limit, .max = INT_MAX
#define STEPS(limit) .min = limit, .max = (double)LONG_MAX
#define RESUME .resume = true
#define ASKED .resume = true, .asked = true

const struct key config_keys[] = {
    ROW(model.vocab_size, "256", .min = 1, .max = MARK_TOKEN, RESUME, .help = "number of different tokens"),
    ROW(model.hidden_size, "64", COUNT(1), RESUME,
        .help = "width of the hidden states; a multiple of 2 x num_heads, unless head_dim is given"),
    ROW(model.num_layers, "6", .min = 1, .max = 100000, RESUME, .help = "transformer layers"),
    ROW(model.num_heads, "4", COUNT(1), RESUME, .help = "attention heads"),
    ROW(model.num_kv_heads, "0", COUNT(0), RESUME,
        .help = "key/value heads, a divisor of num_heads; 0: num_heads"),
    ROW(model.head_dim, "0", COUNT(0), RESUME,
        .help = "channels of a head, an even number; num_heads x head_dim need not be hidden_size. 0: "
                "hidden_size / num_heads, and such a width is written as 0"),
    ROW(model.intermediate_size, "176", COUNT(1), RESUME, .help = "width of the MLP"),
    CHOICE(model.attention_bias, "none", .choices = "none|qkv|all", RESUME,
           .help =
               "biases of attention's projections: none; of queries, keys and values; and of the output too"),
    CHOICE(model.qk_norm, "none", .choices = "none|head", RESUME,
           .help =
               "head: RMSNorm of each head of queries and keys, with a weight of head_dim, before rotation"),
    ROW(model.rope_theta, "10000.0", ABOVE_0, RESUME, .help = "base of the rotary position frequencies"),
    ROW(model.norm_eps, "1e-5", ABOVE_0, RESUME, .help = "added to the mean square in RMSNorm"),
    ROW(model.tie_embeddings, "false", RESUME, .help = "the output head shares the embedding's weights"),
    ROW(model.logit_softcap, "0.0", FROM(0), RESUME,
        .help = "c: logits become c tanh(logits/c), wherever they are used; 0: they stay as they are"),

    CHOICE(model.rope_scaling.kind, "none", .rows = rotary_words, RESUME,
           .help = "rotary positions of sequences longer than a model was first trained on: frequencies are "
                   "divided by factor (linear), or low ones alone, as Llama 3.1's (llama3)"),
    ROW(model.rope_scaling.factor, "1.0", .min = 1, .max = FLT_MAX, RESUME,
        .help = "linear, llama3: how many times as far positions reach"),
    ROW(model.rope_scaling.low_freq_factor, "1.0", ABOVE_0, RESUME,
        .help = "llama3: frequencies of fewer turns over original_max_position_embeddings are divided"),
    ROW(model.rope_scaling.high_freq_factor, "4.0", ABOVE_0, RESUME,
        .help = "llama3: frequencies of more turns over these positions stay as they are"),
    ROW(model.rope_scaling.original_max_position_embeddings, "8192", COUNT(1), RESUME,
        .help = "llama3: positions that the model was trained on"),

    {"model.delta.distances", KEY_INTS, offsetof(struct config, model.delta.distances), "[1, 2, 3, 4]",
     COUNT(1), .count_offset = offsetof(struct config, model.delta.num_distances), RESUME,
     .help = "layer l reads layers l - d for these d, increasing; []: a plain transformer"},
    {"model.delta.edges", KEY_EDGES, offsetof(struct config, model.delta.edges), "[]",
     .count_offset = offsetof(struct config, model.delta.num_edges), RESUME,
     .help = "connections one by one, in place of distances: [[TARGET, SOURCE], ...], layer TARGET reads "
             "layer SOURCE below it, -1: the embedding output; []: by distances"},
    ROW(model.delta.embedding_source, "false", RESUME, .help = "the embedding output counts as layer -1"),
    CHOICE(model.delta.kind, "bottleneck", .rows = gate_words, RESUME, .help = "the gate of a connection"),
    ROW(model.delta.hidden, "32", COUNT(0), RESUME, .help = "bottleneck: width of the projected delta"),
    ROW(model.delta.gate_hidden, "16", COUNT(0), RESUME,
        .help = "bottleneck: width of the gate's MLP; adaptive: channel groups"),
    CHOICE(model.delta.distance_scale, "reciprocal", .choices = "reciprocal|exponential|none", RESUME,
           .help = "how a connection weakens with its distance d: 1/(1 + decay d), exp(-decay d), 1"),
    ROW(model.delta.decay, "0.1", FROM(0), RESUME, .help = "decay of distance_scale"),
    ROW(model.delta.normalize, "false", RESUME, .help = "deltas of unit norm times a learned scale"),
    ROW(model.delta.epsilon, "1e-3", ABOVE_0, RESUME,
        .help = "least norm that normalize divides by; added to the mean square in adaptive gates"),
    ROW(model.delta.temperature, "1.0", ABOVE_0, RESUME,
        .help = "adaptive: temperature of the gate's softmax, above 0"),
    CHOICE(model.delta.aggregate, "learned", .rows = aggregate_words, RESUME,
           .help = "how a layer's connections are joined"),
    ROW(model.delta.attention_dim, "16", COUNT(0), RESUME,
        .help = "aggregate attention: width of queries and keys"),
    ROW(model.delta.attention_heads, "4", COUNT(0), RESUME,
        .help = "aggregate multihead: heads, a divisor of hidden_size"),
    ROW(model.delta.stage_steps, "0", COUNT(0), RESUME,
        .help = "steps between the introduction of one distance and the next; 0: all from the start"),
    CHOICE(model.delta.regularizer, "none", .choices = "none|fixed|adaptive", RESUME,
           .help = "sparsity and entropy terms in the loss"),
    ROW(model.delta.sparsity_weight, "0.01", FROM(0), RESUME,
        .help = "regularizer fixed: weight of the contributions' size"),
    ROW(model.delta.entropy_weight, "0.001", FROM(0), RESUME,
        .help = "regularizer fixed: weight of the gates' entropy"),
    ROW(model.delta.l1_weight, "0.0", FROM(0), RESUME,
        .help = "weight in the loss of the sum of the absolute weights of active connections, whatever the "
                "regularizer"),

    {"model.exit.layers", KEY_INTS, offsetof(struct config, model.exit.layers), "[]", COUNT(0),
     .count_offset = offsetof(struct config, model.exit.num_layers), RESUME,
     .help = "layers below the last, at most 16, increasing, whose outputs the head reads too, by a norm of their own: exits, "
             "whose losses join the loss, and by which gdn generate --exit leaves early"},
    {"model.exit.weights", KEY_REALS, offsetof(struct config, model.exit.weights), "[]", ABOVE_0,
     .count_offset = offsetof(struct config, model.exit.num_weights), RESUME,
     .help = "weights of the exits' losses beside the last layer's, whose weight is 1: one for each of exit.layers"},
    CHOICE(model.exit.curriculum, "none", .choices = "none|rotate|gradual", RESUME,
           .help = "which exits a step has: all; one in turn, with its weight times their number; or one after "
                   "the other from the deepest up, all from half of the steps on"),

    {"model.rules", KEY_RULES, offsetof(struct config, model.rules), "[]",
     .count_offset = offsetof(struct config, model.num_rules), RESUME,
     .help = "rules between layers beside the delta connections, combined in order: [{kind: KIND, ...}]; "
             "what else an entry may say depends on its kind"},

    ROW(train.steps, "20", STEPS(1), .help = "optimiser steps of the whole training"),
    ROW(train.batch_size, "4", COUNT(1), ASKED,
        .help = "sequences of one optimiser step, over the whole mesh"),
    {"train.batch_ramp", KEY_RAMP, offsetof(struct config, train.batch_ramp), "[]", COUNT(1),
     .count_offset = offsetof(struct config, train.num_ramp), ASKED,
     .help = "batches that change their size: [[0, 32], [1000, 64]] has 32 sequences a step, and 64 after "
             "1000 steps; batch_size is then the last, or left out"},
    ROW(train.micro_batch_size, "0", COUNT(0),
        .help =
            "sequences computed at a time by one rank; 0: batch_size, or the ramp's smallest, / data ranks"),
    ROW(train.sequence_length, "32", COUNT(1), ASKED, .help = "tokens of a sequence"),
    ROW(train.lr, "1e-3", FROM(0), .help = "highest learning rate"),
    ROW(train.min_lr_ratio, "0.1", UP_TO_1, .help = "the schedule ends at this part of lr"),
    ROW(train.warmup_steps, "5", STEPS(0), .help = "steps over which the learning rate rises to lr"),
    CHOICE(train.optimizer, "adamw", .choices = "adamw|muon", ASKED,
           .help =
               "muon: matrices in layers are updated by their orthogonalised momentum, all else by AdamW"),
    CHOICE(train.muon.split, "qkv", .choices = "whole|qkv|head",
           .help =
               "muon: a layer's queries, keys and values are one matrix; one each; or each head's rows one"),
    ROW(train.muon.steps, "5", .min = 1, .max = 100,
        .help = "muon: Newton-Schulz steps that orthogonalise a matrix"),
    ROW(train.muon.momentum, "0.95", BELOW_1, .help = "muon: Nesterov momentum of matrices"),
    ROW(train.warmup_tokens, "0", STEPS(0),
        .help = "tokens over which it rises, in place of warmup_steps; 0: by steps"),
    ROW(train.beta1, "0.9", BELOW_1, .help = "AdamW: decay of the mean of gradients"),
    ROW(train.beta2, "0.95", BELOW_1, .help = "AdamW: decay of the mean of squared gradients"),
    ROW(train.adam_eps, "1e-8", ABOVE_0, .help = "AdamW: added to the root of the mean square"),
    ROW(train.weight_decay, "0.1", FROM(0), .help = "AdamW: decoupled decay of matrices"),
    {"train.groups", KEY_GROUPS, offsetof(struct config, train.groups), "[]",
     .count_offset = offsetof(struct config, train.num_groups),
     .help =
         "settings of some tensors: [{match: 'layers.*.delta.*.mix', lr_scale: 5, weight_decay: 0}], also "
         "beta1 and beta2; lr_scale is times lr, what is not given is as for other tensors. Of groups "
         "that match a tensor's name the first holds"},
    ROW(train.cautious_decay, "false",
        .help = "weights decay only where that does not work against their update: elements of which update "
                "and weight have the same sign"),
    CHOICE(train.decay_schedule, "constant", .choices = "constant|linear",
           .help = "of weight_decay: constant, or a line down to 0 at the last step"),
    ROW(train.grad_clip, "1.0", FROM(0), .help = "greatest global gradient norm; 0: no clipping"),
    ROW(train.z_loss, "0.0", FROM(0), RESUME,
        .help = "weight in the loss of the mean squared logarithm of the softmax's denominator"),
    DROPOUT(residual, "what attention and MLP add to the stream"),
    DROPOUT(attention, "attention's probabilities"),
    DROPOUT(gate, "the gates of delta connections"),
    {"train.dropout.layer", TYPE(config, model.dropout.layer), offsetof(struct config, model.dropout.layer), "0.0",
     BELOW_1,
     .help = "training leaves the last layer out, for the whole batch, in this part of steps, drawn by seed and step, "
             "and others less often: layer l in 2^(l/(num_layers - 1)) - 1 times that"},
    ROW(train.seed, "1", .max = (double)UINT64_MAX, RESUME,
        .help = "of the initial weights and the data order"),
    CHOICE(train.schedule, "cosine", .choices = "cosine|linear|constant|wsd",
           .help =
               "after the warm-up: a cosine or a line down to min_lr_ratio; constant; or wsd, lr held and "
               "let down over the last decay_fraction of the steps"),
    ROW(train.decay_fraction, "0.2", UP_TO_1, .help = "wsd: the part of the steps over which it decays"),
    CHOICE(train.decay_shape, "linear", .choices = "linear|sqrt",
           .help = "wsd: a line down, or one minus a square root, which falls fast at first"),
    CHOICE(train.precision, "fp32", .choices = "fp32|bf16|fp16|fp8",
           .help =
               "how numbers enter matrix products and attention, on a device that has it: bf16; fp16, with "
               "a loss scale; or fp8 in the trunk's products and bf16 elsewhere. Weights, sums and norms stay "
               "fp32, and so does what is kept, but for train.activations and train.residual. The cpu has fp32 "
               "and bf16, this in products of which no dimension is below 64 and in attention's of heads of 32 "
               "or more"),
    CHOICE(train.activations, "fp32", .choices = "fp32|bf16",
           .help =
               "what is kept from forward to backward pass: norms' outputs, queries, keys and values, "
               "attention's output and the MLP's, and what connections and rules keep of each token. bf16 takes "
               "half the memory for a pass more over each, and rounds what gradients are computed from"),
    {"train.residual", KEY_WORD, offsetof(struct config, model.residual), "fp32", .choices = "fp32|bf16",
     .help = "how the residual stream is stored: outputs of layers, which layers above and connections read, "
             "and what a backward pass needs of it inside layers. bf16 rounds it wherever something has been "
             "added, in training, evaluation and generation alike, and takes half the memory; what is "
             "computed of it stays fp32"},
    ROW(train.graphs, "false",
        .help = "record a step's passes on the device once and repeat them as one call (CUDA graphs), which "
                "saves launches where operations are short; without pipeline ranks, and on several ranks "
                "with transport nccl. Changes no bit"),
    CHOICE(train.recompute, "none", .choices = "none|selective|full|auto",
           .help =
               "what a layer's backward pass computes again instead of keeping it: nothing; what is large "
               "and cheap (norms, and all of its delta connections); all of it; or auto, the least that "
               "fits into train.memory. No result changes by a bit, but in fp8, whose scales count calls, "
               "and the "
               "gradients with compress_sources"),
    CHOICE(train.recompute_delta, "same", .choices = "none|selective|full|auto|same",
           .help = "of a layer's delta connections: nothing; what follows from the linear maps; all of it; "
                   "same: as train.recompute says"),
    ROW(train.recompute_every, "1", COUNT(1),
        .help = "recompute selective or full: only layers 0, n, 2n, ..."),
    ROW(train.recompute_delta_every, "0", COUNT(0),
        .help = "the same of delta connections; 0: as recompute_every"),
    ROW(train.memory, "0.0", .min = 0, .max = 1e9, /* whose bytes a 64-bit integer can count */
        .help = "GiB that a rank may use; 0: what its machine has free, shared among the ranks on it"),
    ROW(train.compress_sources, "0.0", UP_TO_1,
        .help =
            "keep sources from forward to backward pass as low-rank factors of this part of the full "
            "rank; 0: as they are. Changes gradients: what the backward pass computes from factors it "
            "computes a "
            "little otherwise, so they depend on recompute and recompute_delta (auto: on the memory there "
            "is), on micro_batch_size and on where stages end. Saves memory with many more layers than "
            "distances (see gdn plan)"),
    CHOICE(train.prune.by, "none", .choices = "none|contribution|first_order|leave_one_out", RESUME,
           .help = "delta connections go while training goes on, the least important first: by gate x contribution, by "
                   "what the loss would gain without them to first order (gradient x contribution), or by what the loss on "
                   "validation data does gain without each alone, measured at each change: an evaluation for each connection"),
    CHOICE(train.prune.rule, "budget", .choices = "budget|threshold|adaptive", RESUME,
           .help = "how many: to the part keep, fewer and fewer by a cubic schedule; those of less importance than "
                   "threshold; or than threshold (1 + 0.1 step/10000)"),
    ROW(train.prune.keep, "0.5", UP_TO_1, RESUME,
        .help = "part of all connections that is left from end on; with a threshold, at least"),
    ROW(train.prune.threshold, "0.0", FROM(0), RESUME, .help = "threshold, adaptive: of the importance"),
    ROW(train.prune.begin, "0", STEPS(0), RESUME, .help = "the first step before which connections may go"),
    ROW(train.prune.end, "0", STEPS(0), RESUME, .help = "the last one, above begin"),
    ROW(train.prune.interval, "100", STEPS(1), RESUME, .help = "between the two, every so many steps"),
    ROW(train.prune.regrow, "0.0", UP_TO_1, RESUME,
        .help = "part of the connections left that gives way, at a change, to the most important of those that have gone; it falls "
                "in a line to none at end. 0: what has gone stays gone"),
    ROW(train.prune.batches, "4", STEPS(1), RESUME,
        .help = "leave_one_out: batches of batch_size of the first validation set, the same ones at each change"),
    ROW(train.eval_interval, "0", STEPS(0), .help = "steps between evaluations; 0: none"),
    ROW(train.eval_batches, "0", STEPS(0),
        .help = "batches of an evaluation; 0: every validation sequence, each once"),
    ROW(train.gate_interval, "0", STEPS(0),
        .help = "steps between records of the gates' sparsity and entropy, and of each connection's gate and "
                "contribution (events `gates`); 0: none"),
    ROW(train.noise_interval, "0", STEPS(0),
        .help = "steps between measurements of the gradient noise scale, which says how large batches pay "
                "(events `noise`); each takes another step's time; 0: none"),
    ROW(train.stop_at, "0", STEPS(0),
        .help = "stop with a checkpoint and status 3 once this many steps are done; 0: off"),
    ROW(train.time_limit, "0.0", FROM(0),
        .help = "minutes after which this start stops in time, with a checkpoint and status 3; 0: what the "
                "environment says, SLURM_JOB_END_TIME or GDN_END_TIME, in Unix seconds"),

    AXIS(data, AXIS_DATA, "0", COUNT(0), .help = "data-parallel ranks; 0: all that are left over"),
    AXIS(tensor, AXIS_TENSOR, "1", COUNT(1),
         .help = "ranks that share every layer's heads and channels: a divisor of num_heads, num_kv_heads, "
                 "intermediate_size, delta.hidden (unless mesh.delta is connection) and attention_heads "
                 "(multihead)"),
    AXIS(pipeline, AXIS_PIPELINE, "1", COUNT(1),
         .help = "ranks that have the layers one after the other, as stages of a pipeline"),
    AXIS(context, AXIS_CONTEXT, "1", COUNT(1),
         .help = "ranks that share every sequence, for contexts that no rank can hold: each has two pieces of it, "
                 "which attention brings together as context_exchange says (sequence_length a multiple of 2 x context; "
                 "without compression)"),
    CHOICE(mesh.context_exchange, "gather", .rows = exchange_words,
           .help = "how context ranks bring a sequence together for attention: keys and values of all go to all "
                   "(gather); they go round from rank to rank while others are computed with, so that "
                   "memory does not grow with the sequence's (ring); or each rank gets all of its share of "
                   "the heads and gives it back (heads; num_kv_heads / tensor a multiple of context)"),
    ROW(mesh.interleave, "1", COUNT(1),
        .help = "stages of each pipeline rank, pipeline x interleave <= num_layers; more: it idles less at a "
                "step's ends, but sends more"),
    CHOICE(
        mesh.schedule, "1f1b", .choices = "1f1b|zero_bubble|zero_bubble_v",
        .help =
            "order of a pipeline's passes: one forward and one backward in turn; or the same with gradients "
            "of weights "
            "computed where ranks would wait, within the memory of 1f1b's largest rank and to the same bits; or "
            "zero_bubble_v, with two spans of layers on each rank, so that the first has the first and the last "
            "(both: pipeline of 2 or more, interleave 1, precision other than fp8; v: 2 x pipeline <= num_layers)"),
    ROW(mesh.schedule_memory, "0.0", .min = 0, .max = 1e9,
        .help = "GiB of a rank that training may take up for gradients of weights to wait, in zero_bubble and "
                "zero_bubble_v: weights, gradients, optimiser, all that passes keep; 0: zero_bubble's as much as "
                "1f1b's largest rank takes, zero_bubble_v's a set for one pass"),
    CHOICE(mesh.delta, "channel", .choices = "channel|connection",
           .help = "tensor ranks share each connection's channels, or each holds some connections whole"),
    ROW(mesh.sequence_parallel, "false",
        .help =
            "a tensor rank normalises, adds up and keeps its own tokens only; others' are gathered where a "
            "product needs them, on the way back again: less memory and arithmetic, more bytes sent"),
    ROW(mesh.tensor_pieces, "1", .min = 1, .max = 64,
        .help = "products whose terms tensor ranks sum are multiplied in so many pieces of rows; a piece's sum "
                "travels while the next is multiplied. 1: at once, and each sum is waited for"),
    CHOICE(mesh.transport, "auto", .choices = "auto|staged|nccl",
           .help =
               "how ranks on devices exchange what lies there: through host memory and MPI; by NCCL, where "
               "every rank has a GPU of its own; or auto, NCCL where that is so"),
    CHOICE(mesh.wire, "stored", .choices = "stored|fp32|bf16",
           .help =
               "the type in which activations and their gradients travel between stages and tensor ranks: as "
               "they are stored, which is fp32, or each rounded to bf16 when it is sent: half the bytes, and "
               "other losses. Sums are formed in fp32; sums of weights' gradients are fp32 throughout"),
    ROW(mesh.overlap, "true",
        .help = "sum gradients over data ranks while the last micro-batch's backward pass still runs"),
    ROW(mesh.sum_group, "1", COUNT(1),
        .help = "so many neighbouring data ranks, as a rule those of a node, sum gradients among themselves first; "
                "then these sums are summed, so that 1/sum_group as much leaves the node. It divides data x context; "
                "1: all at once"),
    ROW(mesh.narrow_sources, "true",
        .help = "bottleneck sources cross stages as their projections where those are fewer bytes"),
    ROW(mesh.bucket, "4194304", .min = 1, .max = 1 << 30,
        .help = "elements of the gradient summed at a time; small ones overlap better, large ones cost fewer "
                "calls"),
    ROW(mesh.small, "8192", COUNT(0),
        .help = "every data rank has the optimiser state of tensors with fewer elements on it; of others, a "
                "share"),
    ROW(mesh.compress_boundary, "0.0", UP_TO_1,
        .help = "what crosses stages in training goes as low-rank factors of this part of the full rank; 0: "
                "as it is. Changes losses"),
    ROW(mesh.compress_feedback, "true",
        .help = "what compress_boundary drops of a gradient is added to the next micro-batch's"),

    ROW(data.train, "''",
        .help = "training tokens: a file or a glob such as 'text/*.txt', or a list of them, joined in this "
                "order"),
    ROW(data.validation, "''",
        .help = "validation tokens: a file, a glob or a list of them; '': none, or see validation_fraction"),
    ROW(data.validation_fraction, "0.0", BELOW_1, RESUME,
        .help = "the last part of the training tokens that is kept for validation"),
    {"data.validations", KEY_PATHS, offsetof(struct config, data.validations), "{}",
     .count_offset = offsetof(struct config, data.num_validations), .max = 100,
     .help = "more validation sets by name: {books: 'books/*.txt', letters: letters.txt}, each evaluated "
             "whenever data.validation or validation_fraction is, by which the best checkpoint is judged; "
             "without these by the first of them"},
    {"data.sources", KEY_SOURCES, offsetof(struct config, data.sources), "[]",
     .count_offset = offsetof(struct config, data.num_sources), RESUME,
     .help = "instead of data.train, a mixture: [{path: a.txt, weight: 2, name: a}, {path: b.txt, weight: "
             "1}]; of each source's part of validation_fraction the loss is told under its name"},
    CHOICE(data.format, "text", .rows = token_format_words,
           .help = "of the data files; nanogpt: raw uint16 numbers; jsonl: lines of JSON, each a document"),
    ROW(data.tokenizer, "''", .home = true,
        .help =
            "a tokenizer.json of Hugging Face's library, or bytes ('' for text and jsonl: bytes): what makes "
            "tokens of text and jsonl, once, into cache; of token files, what has made them"),
    ROW(data.field, "text",
        .help = "jsonl: the member of a line's object that has the document's text, or its messages (then "
                "messages, if nothing else is said)"),
    CHOICE(data.messages, "none", .rows = conversation_template_choices,
           .help = "jsonl: documents are lists of messages, written by this template, of which only the "
                   "assistant's contents count in the loss; needs a tokenizer with its special tokens"),
    ROW(data.cache, "runs/.cache", .home = true,
        .help = "folder that keeps the tokens of text and jsonl for later starts and other runs; it may be "
                "removed at any time between them"),
    CHOICE(data.order, "shuffle", .choices = "shuffle|sequential", RESUME, .help = "of the samples"),
    CHOICE(
        data.documents, "join", .choices = "join|mask", RESUME,
        .help =
            "mask: a token sees its own document only, and positions begin again with each document; join: "
            "those before it in the sample too"),
    CHOICE(data.packing, "stream", .choices = "stream|best_fit", RESUME,
           .help = "best_fit: samples are whole documents, packed with the least left over, which does not "
                   "count; stream: "
                   "the tokens one after the other"),

    ROW(checkpoint.interval, "0", STEPS(0),
        .help = "steps between checkpoints; 0: off. One is always saved at the end and at a stop"),
    ROW(checkpoint.interval_minutes, "30.0", FROM(0),
        .help = "minutes from one checkpoint to the next, besides interval; 0: off"),
    ROW(checkpoint.keep, "3", COUNT(0), .help = "how many of the newest checkpoints are kept; 0: all"),
    ROW(checkpoint.keep_every, "0", STEPS(0),
        .help = "checkpoints whose step is a multiple of this are kept besides; 0: none"),
    CHOICE(checkpoint.asynchronous, "auto", .choices = "false|true|auto",
           .help =
               "true: training stops for a copy in memory only, which is written while it goes on; false: "
               "until the checkpoint is written; auto: true where the copy fits into train.memory or what "
               "is free, else false. With no interval given, true is auto"),
    CHOICE(checkpoint.files, "one", .choices = "one|node",
           .help = "all ranks write into one file, or those of each node into one of their own, joined by "
                   "checkpoint.h5"),
    ROW(checkpoint.init_from, "''", .home = true,
        .help =
            "an HDF5 file with starting weights in /initial or /model, or a folder of Hugging Face's with "
            "config.json and safetensors; '': drawn at random"),

    ROW(delta_store.interval, "0", STEPS(0),
        .help = "steps between stored differences (target - source) of delta connections, as low-rank "
                "factors in RUN/deltas (see gdn deltas); 0: none"),
    ROW(delta_store.ratio, "0.0", UP_TO_1,
        .help = "rank of the factors as part of the full rank; or give a tolerance"),
    ROW(delta_store.tolerance, "0.0", BELOW_1,
        .help = "relative error (Frobenius norm) that the factors may have; or give a ratio"),
    {"delta_store.layers", KEY_INTS, offsetof(struct config, delta_store.layers), "[]", COUNT(0),
     .count_offset = offsetof(struct config, delta_store.num_layers),
     .help = "whose incoming connections are stored; []: all layers'"},
    ROW(delta_store.required, "false",
        .help = "end the run where factors cannot be computed or written; false: warn and go on"),

    ROW(watchdog.start, "1800.0", FROM(0),
        .help = "seconds until the first step after which a run is ended as hanging; 0: never"),
    ROW(watchdog.step, "600.0", FROM(0), .help = "the same of a step or an evaluation"),
    ROW(watchdog.checkpoint, "1800.0", FROM(0), .help = "the same of saving a checkpoint"),
    ROW(watchdog.replicas, "100", STEPS(0),
        .help = "steps between comparisons of the copies of weights that ranks have; 0: none"),
    ROW(watchdog.slow, "1.5", FROM(0),
        .help = "a rank that computes this many times as long as the median rank is reported; 0: none"),

    ROW(spikes.window, "0", STEPS(0),
        .help = "steps whose losses and gradient norms the next one's are compared with; 0: not compared"),
    ROW(spikes.threshold, "6.0", ABOVE_0,
        .help = "standard deviations above the window's mean that make a spike"),
    CHOICE(spikes.action, "skip", .choices = "skip|rewind|report",
           .help = "a spike's step is left out; or training goes back to the last checkpoint and on with the "
                   "data after the spike; or it is only reported"),
    ROW(spikes.most, "10", STEPS(0), .help = "spikes of a run; one more ends it with status 5"),

    ROW(monitor.interval, "10", STEPS(0),
        .help = "steps between events `monitor` in metrics.jsonl, with RUN/metrics.prom for Prometheus; 0: "
                "none"),

    CHOICE(device, "auto", .choices = "auto|cpu|cuda|emulated",
           .help = "where to compute; auto: cuda where this build has it and every rank a GPU, else cpu; "
                   "emulated: the CUDA code on the CPU, for tests"),
};
_Static_assert(sizeof config_keys / sizeof *config_keys == CONFIG_KEYS, "CONFIG_KEYS is the number of rows");

#define SOURCE(member, ...)                                                                                  \
    { #member, TYPE(source_config, member), offsetof(struct source_config, member), __VA_ARGS__ }
const struct key source_keys[SOURCE_KEYS] = {
    SOURCE(path, NULL, .help = "a file, a glob or a list of them"),
    SOURCE(weight, "1.0", ABOVE_0, .help = "how often it is drawn from, relative to the others"),
    SOURCE(name, "''", .help = "what its validation loss is called; '': source_0, source_1, ..."),
};

#define GROUP(member, ...)                                                                                   \
    { #member, KEY_REAL, offsetof(struct parameter_group, member), __VA_ARGS__ }
const struct key group_keys[GROUP_KEYS] = {
    [GROUP_NAMES] = {"match", KEY_STRING, .help = "a pattern of tensors' names"},
    [GROUP_LR_SCALE] = GROUP(lr_scale, NULL, FROM(0)),
    [GROUP_WEIGHT_DECAY] = GROUP(weight_decay, NULL, FROM(0)),
    [GROUP_BETA1] = GROUP(beta1, NULL, BELOW_1),
    [GROUP_BETA2] = GROUP(beta2, NULL, BELOW_1),
};
