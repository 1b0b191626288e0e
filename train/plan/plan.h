/* The plan of a run, made without training and without MPI, for a mesh of any size: what every rank holds,
 * computes and sends in a step, and how long that should take. It is made of the parts that training itself
 * uses: the ranks' parameter tables and shards, the schedule that would be executed, and the passes, run dry
 * (plan/cost.h). */
#ifndef GDN_PLAN_H
#define GDN_PLAN_H

#include <stdio.h>

#include "train/config/config.h"
#include "train/memory/memory.h"
#include "train/optimizer/groups.h"
#include "train/partition/pipeline.h"
#include "train/plan/rule_counts.h"
#include "train/plan/simulate.h"
#include "train/plan/rank_plan.h"
#include "train/plan/recompute_auto.h"

enum { PLAN_RANKS = 1000000 }; /* at most */

struct plan_rank {
    struct memory memory;
    int64_t optimizer_formula; /* bytes of its moments: large parameters ÷ copies + small ones, of each */
    int64_t parameters;        /* that it holds */
    double flops;              /* of a step */
    int64_t bytes[AXES];       /* that it hands over in a step */
};

struct plan {
    const struct config *config;
    struct pipeline pipeline;     /* of tensor index 0 */
    struct evaluation evaluation; /* as described; empty where there is no validation data */
    struct rank_work work;
    struct available available; /* train.memory's */
    struct recompute *policy;   /* [num_layers] */
    double *ratio;  /* [pipeline ranks] memory without recomputation over memory available; 0: memory did not
                       decide */
    int size[AXES]; /* ranks of each axis; work.size: with copies as one */
    long ranks;
    int batch_parts;         /* of each batch, over all ranks */
    long share, micro_batch; /* sequences of a step on a rank, and of a micro-batch */
    int micro_batches;       /* of a rank in a step */
    const char *foreground;  /* why checkpoints are saved while training waits; NULL: as configured */
    int64_t parameters;      /* of the model */
    struct rule_counts rules;
    struct group_uses groups;
    struct plan_machine machine;

    struct plan_rank *rank; /* [ranks] by MPI's number */
    /* [pipeline ranks · tensor], tensor index fastest; each [actions]; copy 0 */
    struct action_cost **cost;
    struct action_cost **slowest;  /* [pipeline ranks] the same of whichever tensor index has most of each */
    struct matrices_cost matrices; /* the same of the pipeline rank at hand */
    struct simulation step;

    double flops; /* of a step on one rank with the whole model */
    double ideal; /* seconds of it, evenly spread over all ranks at machine.flops */
};

/* Plans a configuration for `ranks` ranks; 0: as many as its mesh names. Not collective. GDN_INPUT for what
 * does not fit, as in training, also where a rank's memory is more than train.memory leaves, in the words of
 * train/plan/fit.h; GDN_INTERNAL. `config` outlives the plan. */
int plan_create(const struct config *config, long ranks, const struct plan_machine *machine,
                struct plan *out);
void plan_free(struct plan *plan);

/* The bytes of the rank that needs most, of those looked at until one needs more than `enough`, and nothing
 * else, which is far quicker; train.recompute and recompute_delta are not auto. Not collective. As
 * plan_create, but train.memory is not looked at. */
int plan_max_memory(const struct config *config, long ranks, int64_t enough, int64_t *bytes);

/* The parameters of the whole model, and the elements of their moments. Not collective. GDN_INPUT,
 * GDN_INTERNAL. */
int plan_parameters(const struct config *config, int64_t *count, int64_t *moments);

/* How long all of train.steps should take, without start-up, evaluations and waits for checkpoints; smaller
 * batches in proportion. */
double plan_run_seconds(const struct plan *plan);

/* Tables for people; one JSON object; every action of every pipeline rank in words. */
void plan_print(const struct plan *plan, FILE *out);
void plan_json(const struct plan *plan, FILE *out);
/* Of the tables, the step as a picture. */
void plan_print_picture(const struct plan *plan, FILE *out);
void plan_print_schedule(const struct plan *plan, FILE *out);

/* Draws the step as a time line of all pipeline ranks, an SVG. The file is complete or not there. GDN_INPUT where it
 * cannot be written or gnuplot is missing. */
int plan_svg(const struct plan *plan, const char *path);

/* Writes the step as SimGrid's time-independent traces (Desprez et al. 2011) into `directory`, which is made:
 * rank_N.txt for each rank, and traces.txt, the list that `smpirun -replay` takes. GDN_INPUT where that
 * cannot be written; GDN_INTERNAL without memory. */
int plan_trace(const struct plan *plan, const char *directory);

#endif
