/* The plan as text: a few aligned tables, a line a pipeline rank. */
#include "train/plan/plan.h"

#include <math.h>
#include <string.h>

#include "train/config/batch.h"
#include "train/config/no_effect.h"
#include "train/optimizer/update.h"
#include "train/plan/text.h"

struct unit {
    double size;
    const char *name;
};

/* The unit in which a greatest value is at least 1, or nearly. */
static struct unit unit_of(double greatest, double step, const char *const names[], int count) {
    struct unit unit = {1, names[0]};
    for (int i = 1; i < count && greatest >= unit.size * step * 0.9; i++)
        unit = (struct unit){unit.size * step, names[i]};
    return unit;
}

static struct unit byte_unit(double greatest) {
    return unit_of(greatest, 1024, (const char *const[]){"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}, 6);
}

static struct unit flop_unit(double greatest) {
    static const char *const names[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
    return unit_of(greatest, 1000, names, 7);
}

/* ------------------------------------------------------------------ greatest over a pipeline rank's ranks */

static void raise(int64_t *greatest, int64_t value) {
    if (value > *greatest) *greatest = value;
}

static void raise_all(struct plan_rank *max, const struct plan_rank *r) {
    if (memory_sum(&r->memory) > memory_sum(&max->memory)) max->memory = r->memory;
    raise(&max->optimizer_formula, r->optimizer_formula);
    raise(&max->parameters, r->parameters);
    max->flops = fmax(max->flops, r->flops);
    for (int axis = 0; axis < axes_count(); axis++) raise(&max->bytes[axis], r->bytes[axis]);
}

/* Of all ranks of a pipeline index, the greatest of each figure. Memory is that of the rank that needs most.
 */
static struct plan_rank max_of(const struct plan *plan, int pipeline_index) {
    const long run = axes_stride(plan->size, AXIS_PIPELINE); /* neighbours with the same index */
    struct plan_rank max = plan->rank[pipeline_index * run];
    for (long first = pipeline_index * run; first < plan->ranks; first += run * plan->size[AXIS_PIPELINE])
        for (long i = 0; i < run; i++) raise_all(&max, &plan->rank[first + i]);
    return max;
}

/* How many moments the optimiser keeps of a tensor. */
struct kept {
    int fewest, most;
};

static struct kept kept_moments(const struct plan *plan) {
    struct kept kept = {MOMENTS, 0};
    for (int r = 0; r < plan->pipeline.ranks; r++)
        for (int i = 0; i < plan->pipeline.table[r].rows; i++) {
            int count = plan->pipeline.table[r].row[i].treatment.moments->count;
            if (count < kept.fewest) kept.fewest = count;
            if (count > kept.most) kept.most = count;
        }
    return kept;
}

static const char *up_to(struct kept kept) {
    return kept.fewest < kept.most ? "up to " : "";
}

static const char *over_others(const struct plan *plan) {
    return plan->ranks > plan->size[AXIS_PIPELINE] ? " (where its tensor and data ranks differ, the greatest)"
                                                   : "";
}

/* ----------------------------------------------------------------------------------------------- head */

/* "schedule  zero_bubble_v: gradients of weights wait, of 2, 3, 1 passes of pipeline ranks 0-2" */
static void print_v(const struct pipeline *p, FILE *out) {
    fprintf(out, "schedule  zero_bubble_v: gradients of weights wait, of");
    for (int r = 0; r < p->ranks; r++) fprintf(out, "%s %d", r ? "," : "", p->weight_sets[r]);
    fprintf(out, " passes of pipeline ranks 0-%d\n", p->ranks - 1);
}

/* "schedule  zero_bubble: gradients of weights wait, on pipeline rank 1 of 1 micro-batch, layers 3-5; …" */
static void print_schedule(const struct plan *plan, FILE *out) {
    const struct pipeline *p = &plan->pipeline;
    bool any = false;
    if (plan->config->mesh.schedule == SCHEDULE_1F1B) return;
    if (p->layout->v) {
        print_v(p, out);
        return;
    }
    fprintf(out, "schedule  zero_bubble: ");
    for (int r = 0; r < p->ranks; r++) {
        int sets = p->weight_sets[r], from = p->weights_from[r], last = p->stage[r].end - 1;
        if (!sets || from > last) continue;
        fprintf(out, "%s rank %d's of %d micro-batch%s, layer",
                any ? ";" : "gradients of weights wait: pipeline", r, sets, sets > 1 ? "es" : "");
        fprintf(out, from < last ? "s %d-%d" : " %d", from, last);
        any = true;
    }
    fprintf(out, "%s\n",
            any ? "" : "no rank has the memory for gradients of weights to wait, so that it is 1f1b");
}

static void print_head(const struct plan *plan, FILE *out) {
    const struct model_config *model = &plan->config->model;
    const struct train_config *train = &plan->config->train;
    char a[32], axes[AXES_TEXT];
    fprintf(out, "model     %d layers, hidden %d, %d heads, vocabulary %d: %s parameters", model->num_layers,
            model->hidden_size, model->num_heads, model->vocab_size, plan_grouped(plan->parameters, a));
    rule_counts_print(&plan->rules, out);
    fprintf(out, "mesh      %s: %s rank%s", axes_text(plan->size, axes), plan_grouped(plan->ranks, a),
            plan->ranks > 1 ? "s" : "");
    int chunks = mesh_chunks(&plan->config->mesh);
    if (chunks > 1) fprintf(out, "; %d stages each", chunks);
    if (plan->config->mesh.wire == WIRE_BF16) fprintf(out, "; activations travel in bf16");
    if (plan->config->mesh.tensor_pieces > 1 && plan->size[AXIS_TENSOR] > 1)
        fprintf(out, "; tensor sums in %d pieces", plan->config->mesh.tensor_pieces);
    fputc('\n', out);
    if (plan->config->device == DEVICE_AUTO)
        fprintf(out, "device    auto is planned as cpu; --set device=cuda plans GPUs\n");
    print_schedule(plan, out);
    fprintf(out, "step      %ld sequences of %d tokens; a data rank has %d micro-batch%s of %ld\n",
            batch_largest(train), train->sequence_length, plan->micro_batches,
            plan->micro_batches > 1 ? "es" : "", plan->micro_batch);
    if (train->num_ramp) {
        char sizes[256];
        batch_text(train, sizes, sizeof sizes);
        fprintf(out, "          batches of %s; this plan is of the largest\n", sizes);
    }
    fprintf(out, "          %s tokens in %ld steps\n", plan_grouped(batch_tokens(train, 0, train->steps), a),
            train->steps);
    double mesh = 0;
    for (long r = 0; r < plan->ranks; r++) mesh += plan->rank[r].flops;
    struct unit unit = flop_unit(plan->flops);
    fprintf(out, "          %.2f %s on one rank; all ranks of the mesh together %.2f, %.1f%% more\n",
            plan->flops / unit.size, unit.name, mesh / unit.size, 100 * (mesh / plan->flops - 1));
    groups_print(train, &plan->groups, out);
}

/* ----------------------------------------------------------------------------------------------- stages */

/* "embedding, 0-3; 8-11, head" */
static void write_layers(const struct plan *plan, int rank, char *text, size_t size) {
    const struct layout *layout = &plan->pipeline.layout[rank];
    int layers = plan->config->model.num_layers;
    FILE *out = fmemopen(text, size, "w");
    if (!out) return;
    for (int c = 0; c < layout->chunks; c++) {
        struct span span = layout_span(layout, c, layers);
        if (c) fputs("; ", out);
        if (!span.first) fputs("embedding, ", out);
        if (span.end - span.first == 1)
            fprintf(out, "%d", span.first);
        else
            fprintf(out, "%d-%d", span.first, span.end - 1);
        if (span.end == layers) fputs(", head", out);
    }
    fclose(out);
    text[size - 1] = 0;
}

/* Of what pipeline ranks have. */
struct spread {
    int count;
    double sum, max;
};

static void spread_add(struct spread *spread, double x) {
    spread->count++;
    spread->sum += x;
    spread->max = fmax(spread->max, x);
}

static double max_to_mean(struct spread x) {
    return x.sum > 0 ? x.max / (x.sum / x.count) : 1;
}

static void print_stages(const struct plan *plan, FILE *out) {
    int ranks = plan->pipeline.schedule.ranks;
    struct spread flops = {0}, parameters = {0}, memory = {0};
    int width = 6;
    for (int r = 0; r < ranks; r++) {
        struct plan_rank max = max_of(plan, r);
        char text[400] = "";
        spread_add(&flops, max.flops);
        spread_add(&parameters, (double)max.parameters);
        spread_add(&memory, (double)memory_sum(&max.memory));
        write_layers(plan, r, text, sizeof text);
        if ((int)strlen(text) > width) width = (int)strlen(text);
    }
    struct unit unit = flop_unit(flops.max);
    fprintf(out, "\nEach pipeline rank's part, on one tensor rank\n");
    fprintf(out, "%6s  %-*s %15s %12s %8s\n", "rank", width, "layers", "parameters", unit.name, "of mean");
    for (int r = 0; r < ranks; r++) {
        struct plan_rank max = max_of(plan, r);
        char text[400] = "", count[32];
        write_layers(plan, r, text, sizeof text);
        fprintf(out, "%6d  %-*s %15s %12.1f %7.0f%%\n", r, width, text, plan_grouped(max.parameters, count),
                max.flops / unit.size, 100 * max.flops * ranks / flops.sum);
    }
    if (ranks > 1)
        fprintf(out, "%6s  greatest over mean: arithmetic %.3f, parameters %.3f, memory %.3f\n", "",
                max_to_mean(flops), max_to_mean(parameters), max_to_mean(memory));
}

/* ----------------------------------------------------------------------------------------------- memory */

static int memory_width(int part) {
    int length = (int)strlen(memory_word[part]);
    return length < 8 ? 8 : length;
}

static void print_memory(const struct plan *plan, FILE *out) {
    int ranks = plan->pipeline.schedule.ranks;
    int64_t greatest = 0, formula = 0, optimizer = 0;
    for (int r = 0; r < ranks; r++) {
        struct plan_rank max = max_of(plan, r);
        raise(&greatest, memory_sum(&max.memory));
        raise(&formula, max.optimizer_formula);
        raise(&optimizer, max.memory.bytes[MEMORY_OPTIMIZER]);
    }
    struct unit unit = byte_unit((double)greatest);
    if (unit.size > 1) unit = byte_unit((double)greatest / 8); /* so that small ones show */
    fprintf(out, "\nMemory of a rank, %s%s\n", unit.name, over_others(plan));
    fprintf(out, "%6s", "rank");
    for (int i = 0; i < MEMORY_PARTS; i++) fprintf(out, " %*s", memory_width(i), memory_word[i]);
    fprintf(out, " %10s\n", "all");
    for (int r = 0; r < ranks; r++) {
        struct memory m = max_of(plan, r).memory;
        fprintf(out, "%6d", r);
        for (int i = 0; i < MEMORY_PARTS; i++)
            fprintf(out, " %*.1f", memory_width(i), (double)m.bytes[i] / unit.size);
        fprintf(out, " %10.1f\n", (double)memory_sum(&m) / unit.size);
    }
    char a[32], b[32];
    struct kept kept = kept_moments(plan);
    fprintf(out,
            "%6s  optimiser: %s bytes at most; %s%d x (large parameters / data + small ones) is %s, the rest "
            "is padding\n",
            "", plan_grouped(optimizer, a), up_to(kept), kept.most * (int)sizeof(real),
            plan_grouped(formula, b));
}

static void print_saving(const struct plan *plan, FILE *out) {
    if (plan->foreground)
        fprintf(out, "saving    training waits for each checkpoint: %s\n", plan->foreground);
}

/* What is computed again; where memory decided, also what the rule that it starts from would have done, by
 * the pipeline rank that is shortest of memory. */
static void print_recomputation(const struct plan *plan, FILE *out) {
    char text[400];
    int worst = 0;
    recompute_text(plan->policy, plan->config->model.num_layers, text, sizeof text);
    fprintf(out, "recompute %s\n", text);
    for (int r = 1; r < plan->pipeline.schedule.ranks; r++)
        if (plan->ratio[r] > plan->ratio[worst]) worst = r;
    if (plan->ratio[worst] == 0) return;
    recompute_rule_text(plan->ratio[worst], text, sizeof text);
    fprintf(out, "          pipeline rank %d: %s\n", worst, text);
}

/* ----------------------------------------------------------------------------------------------- bytes */

static long messages_of(const struct plan *plan, int rank) {
    const struct actions *list = &plan->pipeline.schedule.rank[rank];
    long count = 0;
    for (int i = 0; i < list->count; i++) count += act_kinds[list->action[i].act].role == ROLE_SEND;
    return count;
}

static void print_bytes(const struct plan *plan, FILE *out) {
    if (plan->ranks == 1) return;
    int ranks = plan->pipeline.schedule.ranks;
    int64_t greatest = 0;
    double sum[AXES] = {0};
    for (int r = 0; r < ranks; r++) {
        struct plan_rank max = max_of(plan, r);
        for (int axis = 0; axis < axes_count(); axis++) raise(&greatest, max.bytes[axis]);
    }
    for (long r = 0; r < plan->ranks; r++)
        for (int axis = 0; axis < axes_count(); axis++) sum[axis] += (double)plan->rank[r].bytes[axis];
    struct unit unit = byte_unit((double)greatest / 8);
    fprintf(out, "\nBytes that a rank hands over in a step, %s%s\n", unit.name, over_others(plan));
    fprintf(out, "%6s", "rank");
    for (int i = 0; i < axes_count(); i++)
        if (axes_shown(plan->size, axis_order[i])) fprintf(out, " %12s", axis_rows[axis_order[i]].name);
    fprintf(out, " %10s\n", "messages");
    for (int r = 0; r < ranks; r++) {
        struct plan_rank max = max_of(plan, r);
        fprintf(out, "%6d", r);
        for (int i = 0; i < axes_count(); i++)
            if (axes_shown(plan->size, axis_order[i]))
                fprintf(out, " %12.2f", (double)max.bytes[axis_order[i]] / unit.size);
        fprintf(out, " %10ld\n", messages_of(plan, r));
    }
    double most = 0;
    for (int axis = 0; axis < axes_count(); axis++) most = fmax(most, sum[axis]);
    struct unit all = byte_unit(most / 8);
    fprintf(out, "%6s", "");
    for (int i = 0; i < axes_count(); i++)
        if (axes_shown(plan->size, axis_order[i])) fprintf(out, " %12.2f", sum[axis_order[i]] / all.size);
    fprintf(out, " %s over all ranks\n", all.name);
}

/* ----------------------------------------------------------------------------------------------- time */

/* Columns of an axis's part of the step. */
static int time_width(enum mesh_axis axis) {
    int length = (int)strlen(axis_rows[axis].name) + 1;
    return length < 8 ? 8 : length;
}

static void print_time(const struct plan *plan, FILE *out) {
    const struct simulation *step = &plan->step;
    const struct train_config *train = &plan->config->train;
    char a[32], b[32], c[32];
    double tokens = (double)batch_largest(train) * train->sequence_length;
    fprintf(out,
            "\nPredicted step %s, %s tokens/s. Efficiency %.1f%%: the arithmetic alone, spread evenly, takes "
            "%s.\n",
            plan_seconds(step->seconds, a), plan_grouped((int64_t)(tokens / step->seconds), b),
            100 * plan->ideal / step->seconds, plan_seconds(plan->ideal, c));
    fprintf(out, "All %s steps: %s, without start-up, evaluations and waits for checkpoints\n",
            plan_grouped(train->steps, a), plan_seconds(plan_run_seconds(plan), b));
    fprintf(out, "%6s %11s %8s", "rank", "arithmetic", "update");
    for (int i = 0; i < axes_count(); i++)
        if (axes_shown(plan->size, axis_order[i]))
            fprintf(out, " %*s", time_width(axis_order[i]), axis_rows[axis_order[i]].name);
    fprintf(out, " %8s   of the step\n", "bubble");
    for (int r = 0; r < step->ranks; r++) {
        const struct rank_time *t = &step->rank[r];
        double percent = 100 / step->seconds;
        fprintf(out, "%6d %10.1f%% %7.1f%%", r, t->arithmetic * percent, t->update * percent);
        for (int i = 0; i < axes_count(); i++)
            if (axes_shown(plan->size, axis_order[i]))
                fprintf(out, " %*.1f%%", time_width(axis_order[i]) - 1, t->exposed[axis_order[i]] * percent);
        fprintf(out, " %7.1f%%\n", t->bubble * percent);
    }
    fputc('\n', out);
    plan_print_picture(plan, out);
}

static void print_assumptions(const struct plan *plan, FILE *out) {
    const struct plan_machine *m = &plan->machine;
    char text[32];
    fprintf(out, "\nAssumed of each rank, for the time alone (--help tells what else)\n");
    fprintf(out, "  --flops              %s in matrix products\n", plan_rate(m->flops, "FLOP/s", text));
    for (int i = 0; i < axes_count(); i++)
        if (axes_shown(plan->size, axis_order[i]))
            fprintf(out, "  --bandwidth-%-8s %s\n", axis_rows[axis_order[i]].name,
                    plan_rate(m->bandwidth[axis_order[i]], "B/s", text));
    struct kept kept = kept_moments(plan);
    fprintf(out, "  --bandwidth-memory   %s of the optimiser's update, %s%d bytes a parameter\n",
            plan_rate(m->memory, "B/s", text), up_to(kept), (int)optimizer_element_bytes(kept.most));
    fprintf(out, "  --latency            %s of each message and each sum over an axis\n",
            plan_seconds(m->latency, text));
    if (m->synchronous)
        fprintf(out,
                "  asynchronous_progress: false: only messages between stages move while a rank computes\n");
}

void plan_print(const struct plan *plan, FILE *out) {
    print_head(plan, out);
    no_effect_print(plan->config, plan->size, out);
    print_recomputation(plan, out);
    print_stages(plan, out);
    print_memory(plan, out);
    print_saving(plan, out);
    print_bytes(plan, out);
    print_time(plan, out);
    print_assumptions(plan, out);
}

void plan_print_schedule(const struct plan *plan, FILE *out) {
    const struct schedule *schedule = &plan->pipeline.schedule;
    for (int r = 0; r < schedule->ranks; r++) {
        const struct actions *list = &schedule->rank[r];
        fprintf(out, "%spipeline rank %d: %d actions\n", r ? "\n" : "", r, list->count);
        for (int i = 0; i < list->count; i++) {
            char text[160];
            action_text(&list->action[i], text);
            fprintf(out, "%8.3f ms  %s\n", plan->step.action[r][i].end * 1e3, text);
        }
    }
}
