/* The plan for programs: one JSON object. Bytes, seconds, and arithmetic in which a multiply and an add are
 * two. */
#include "train/plan/plan.h"

static void write_bytes(const int64_t bytes[AXES], FILE *out) {
    for (int i = 0; i < axes_count(); i++)
        fprintf(out, "%s\"%s\":%lld", i ? "," : "{", axis_rows[axis_order[i]].name,
                (long long)bytes[axis_order[i]]);
    fputc('}', out);
}

static void write_memory(const struct memory *m, FILE *out) {
    for (int i = 0; i < MEMORY_PARTS; i++)
        fprintf(out, "%s\"%s\":%lld", i ? "," : "{", memory_key[i], (long long)m->bytes[i]);
    fputc('}', out);
}

/* Policies of all layers and of their connections; where memory decided, by pipeline rank what it started
 * from. */
static void write_recomputation(const struct plan *plan, FILE *out) {
    for (int delta = 0; delta < 2; delta++) {
        fprintf(out, delta ? "],\"connections\":[" : ",\"recompute\":{\"layers\":[");
        for (int l = 0; l < plan->config->model.num_layers; l++)
            fprintf(out, "%s\"%s\"", l ? "," : "",
                    recompute_name(delta ? plan->policy[l].delta : plan->policy[l].layer));
    }
    fprintf(out, "],\"memory\":%lld,\"ratio\":[", (long long)plan->available.bytes);
    for (int r = 0; plan->ratio[0] > 0 && r < plan->pipeline.schedule.ranks; r++)
        fprintf(out, "%s%.6g", r ? "," : "", plan->ratio[r]);
    fprintf(out, "]}");
}

static void write_schedule(const struct plan *plan, FILE *out) {
    static const char *const words[] = {[SCHEDULE_1F1B] = "1f1b",
                                        [SCHEDULE_ZERO_BUBBLE] = "zero_bubble",
                                        [SCHEDULE_ZERO_BUBBLE_V] = "zero_bubble_v"};
    const struct pipeline *p = &plan->pipeline;
    fprintf(out, ",\"schedule\":\"%s\",\"weight_sets\":[", words[plan->config->mesh.schedule]);
    for (int r = 0; r < p->ranks; r++)
        fprintf(out, "%s{\"count\":%d,\"from\":%d}", r ? "," : "", p->weight_sets[r], p->weights_from[r]);
    fputc(']', out);
}

static void write_stages(const struct plan *plan, FILE *out) {
    int ranks = plan->pipeline.schedule.ranks, stages = ranks * mesh_chunks(&plan->config->mesh);
    fprintf(out, ",\"stages\":[");
    for (int s = 0; s < stages; s++)
        fprintf(out, "%s{\"pipeline\":%d,\"first\":%d,\"end\":%d}", s ? "," : "",
                layout_rank_of(plan->pipeline.layout, s), plan->pipeline.stage[s].first,
                plan->pipeline.stage[s].end);
    fputc(']', out);
}

static void write_ranks(const struct plan *plan, FILE *out) {
    fprintf(out, ",\"ranks\":[");
    for (long r = 0; r < plan->ranks; r++) {
        const struct plan_rank *rank = &plan->rank[r];
        int index[AXES];
        axes_place(plan->size, r, index);
        fprintf(out, "%s{\"rank\":%ld", r ? "," : "", r);
        for (int a = 0; a < axes_count(); a++) fprintf(out, ",\"%s\":%d", axis_rows[a].name, index[a]);
        fprintf(out, ",\"parameters\":%lld,\"memory\":", (long long)rank->parameters);
        write_memory(&rank->memory, out);
        fprintf(out, ",\"optimizer_formula\":%lld,\"flops\":%.17g,\"communication_bytes\":",
                (long long)rank->optimizer_formula, rank->flops);
        write_bytes(rank->bytes, out);
        fputc('}', out);
    }
    fputc(']', out);
}

static void write_prediction(const struct plan *plan, FILE *out) {
    const struct simulation *step = &plan->step;
    const struct plan_machine *m = &plan->machine;
    fprintf(out, ",\"step_seconds\":%.17g,\"run_seconds\":%.17g,\"efficiency\":%.17g,\"pipeline_ranks\":[",
            step->seconds, plan_run_seconds(plan), plan->ideal / step->seconds);
    for (int r = 0; r < step->ranks; r++) {
        const struct rank_time *t = &step->rank[r];
        fprintf(out, "%s{\"arithmetic\":%.17g,\"update\":%.17g", r ? "," : "", t->arithmetic, t->update);
        for (int i = 0; i < axes_count(); i++)
            fprintf(out, ",\"%s\":%.17g", axis_rows[axis_order[i]].name, t->exposed[axis_order[i]]);
        fprintf(out, ",\"bubble\":%.17g}", t->bubble);
    }
    fprintf(out, "],\"assumed\":{\"flops\":%.17g", m->flops);
    for (int i = 0; i < axes_count(); i++)
        fprintf(out, ",\"bandwidth_%s\":%.17g", axis_rows[axis_order[i]].name, m->bandwidth[axis_order[i]]);
    fprintf(out, ",\"bandwidth_memory\":%.17g,\"latency\":%.17g,\"asynchronous_progress\":%s}", m->memory,
            m->latency, m->synchronous ? "false" : "true");
}

void plan_json(const struct plan *plan, FILE *out) {
    int64_t all[AXES] = {0};
    for (long r = 0; r < plan->ranks; r++)
        for (int axis = 0; axis < axes_count(); axis++) all[axis] += plan->rank[r].bytes[axis];
    for (int a = 0; a < axes_count(); a++)
        fprintf(out, "%s\"%s\":%d", a ? "," : "{", axis_rows[a].name, plan->size[a]);
    fprintf(out,
            ",\"interleave\":%d,\"parameters\":%lld,\"micro_batches\":%d,\"micro_batch_size\":%ld,"
            "\"flops\":%.17g,\"communication_bytes\":",
            plan->config->mesh.interleave, (long long)plan->parameters, plan->micro_batches,
            plan->micro_batch, plan->flops);
    write_bytes(all, out);
    write_schedule(plan, out);
    write_stages(plan, out);
    write_recomputation(plan, out);
    rule_counts_write(&plan->rules, out);
    groups_json(&plan->config->train, &plan->groups, out);
    write_ranks(plan, out);
    write_prediction(plan, out);
    fputs("}\n", out);
}
