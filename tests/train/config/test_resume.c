/* What a run may resume with: keys that must be the same, keys that may change, and how saving is set. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/checkpoint/checkpoint.h"
#include "dist/layout/layout.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "tests/train/config/config_fixture.h"
#include "tests/support/unit.h"
#include "train/config/keys.h"
#include "train/config/number.h"

#define DATA "model: {vocab_size: 300}\ndata: {sources: [{path: a, weight: 1}, {path: b, weight: 2}]}\n"
static const char *const base = "train: {seed: 3}\n" DATA;

/* Checks that a run with `set` may continue (wrong NULL) from a run of `base`, or is refused with all of the
 * words. */
static void resumes(const char *set, const char *wrong, const char *values) {
    struct config before = right(base, NULL, NULL), now = right(base, set, NULL);
    char *saved = config_text(&before), *own = config_text(&now);
    struct resume resume = {.saved = saved};
    struct resumed resumed;
    int status = config_resume(&now, &resume, &resumed);
    if (!status) assert_true(!resumed.changed && !resumed.configured && !resumed.text[0]);
    resumed_free(&resumed);
    if (!wrong && status) fail_msg("--set %s: %s", set, gdn_failure());
    if (wrong) {
        assert_int_equal(status, GDN_INPUT);
        failure_has(wrong);
        failure_has(values);
        failure_is_short();
    }
    gdn_failure_clear();
    bool differs = strcmp(own, saved) != 0;
    assert_int_equal(config_match_ranks(&now, saved), differs ? GDN_INPUT : GDN_OK); /* nothing may differ */
    if (differs) {
        failure_has("on rank 0");
        failure_is_short();
    }
    gdn_failure_clear();
    free(own);
    free(saved);
    config_free(&before);
    config_free(&now);
}

/* What config_resume makes of `set`, from a checkpoint that `saved` and `configured` are of, with a change or
 * two: batch size and sequence length, and the words to be told. */
static void goes_on(const char *set, const char *saved, const char *configured, const char *change,
                    const char *another, int batch, int length, const char *text, const char *kept) {
    struct config now = right(base, set, NULL);
    char *changes[] = {(char *)change, (char *)another};
    struct resume resume = {saved, configured, 70, changes, !!change + !!another};
    struct resumed resumed;
    if (config_resume(&now, &resume, &resumed)) fail_msg("%s", gdn_failure());
    assert_int_equal(now.train.batch_size, batch);
    assert_int_equal(now.train.sequence_length, length);
    assert_true(strstr(resumed.text, text) && (text[0] || !resumed.text[0]));
    assert_true(kept ? resumed.configured && strstr(resumed.configured, kept) : !resumed.configured);
    assert_int_equal(resumed.changed, strstr(resumed.text, "before it was") != NULL);
    resumed_free(&resumed);
    config_free(&now);
}

/* Base says 4 and 32, and the checkpoint has 16 and 32 since a start that asked for 16. */
static void resume_with(void **state) {
    (void)state;
    struct config changed = right(base, "train.batch_size=16", NULL);
    char *saved = config_text(&changed);
    const char *said = "train: {batch_size: 4}";
    goes_on("train.batch_size=16", saved, NULL, "train.batch_size=16", NULL, 16, 32, "", "batch_size: 16");
    goes_on("train.seed=3", saved, NULL, "train.batch_size=16", NULL, 16, 32, "", "batch_size: 4");
    goes_on("train.seed=3", saved, said, NULL, NULL, 16, 32, "stays 16", "batch_size: 4");
    goes_on("train.batch_size=16", saved, said, NULL, NULL, 16, 32, "", "batch_size: 4");
    goes_on("train.batch_size=8", saved, said, "train.batch_size=16", NULL, 16, 32, "", "batch_size: 8");
    goes_on("train.seed=3", saved, said, "train.batch_size=2", NULL, 2, 32,
            "from step 70 on train.batch_size is 2", "batch_size: 4");
    /* Batch size and ramp are one setting: what is asked for replaces both. */
    goes_on("train.seed=3", saved, said, "train.batch_ramp=[[0, 2], [90, 8]]", NULL, 8, 32,
            "train.batch_ramp is [[0, 2], [90, 8]], before it was []", "batch_size: 4");
    goes_on("train.seed=3", "train: {seed: 3, batch_ramp: [[0, 2], [90, 8]], batch_size: 8}\n" DATA, NULL,
            "train.batch_size=4", NULL, 4, 32, "train.batch_ramp is [], before it was [[0, 2], [90, 8]]",
            "batch_size: 4");
    goes_on("train.seed=3", saved, said, "train.sequence_length=64", NULL, 16, 64, "stays 16", "length: 32");
    goes_on("train.seed=3", saved, said, "train.sequence_length=8", "train.batch_size=4", 4, 8,
            "is 4, before", "length: 32");

    struct config now = right(base, "train.batch_size=8", NULL);
    struct resumed resumed;
    struct resume ramp = {.saved = "train: {seed: 3, batch_ramp: [[0, 2], [90, 8]], batch_size: 8}\n" DATA,
                          .configured = "train: {batch_size: 4}"};
    assert_int_equal(config_resume(&now, &ramp, &resumed), GDN_INPUT); /* 8 is the ramp's last, and no ramp */
    failure_has("train.batch_ramp is [], in the checkpoint [[0, 2], [90, 8]]");
    gdn_failure_clear();
    struct resume other = {.saved = saved, .configured = said};
    assert_int_equal(config_resume(&now, &other, &resumed), GDN_INPUT);
    failure_has("is 8, in the checkpoint 16 (to change it: --resume-with train.batch_size=8)");
    failure_is_short();
    gdn_failure_clear();
    assert_int_equal(config_match_resume(&now, saved), GDN_OK); /* what a rewind needs */
    char *no_batch[] = {"train.batch_size=0"}, *unknown[] = {"train.batch_sizes=8"};
    other = (struct resume){saved, said, 0, no_batch, 1};
    assert_int_equal(config_resume(&now, &other, &resumed), GDN_INPUT);
    failure_has("--resume-with train.batch_size=0");
    gdn_failure_clear();
    assert_int_equal(config_validate_changes(no_batch, 1), GDN_OK);
    assert_int_equal(config_validate_changes(unknown, 1), GDN_INPUT);
    failure_has("train.sequence_length=");
    gdn_failure_clear();
    config_free(&now);
    config_free(&changed);
    free(saved);
}

/* Only an interval that was asked for makes `true` a demand, and what is written out means the same again. */
static void saving(void **state) {
    (void)state;
    static const struct {
        const char *text, *set;
        int saving;
    } cases[] = {
        {"{}", NULL, SAVE_AUTO},
        {"checkpoint: {interval: 5}", NULL, SAVE_AUTO},
        {"checkpoint: {asynchronous: true}", NULL, SAVE_AUTO},
        {"checkpoint: {asynchronous: true, interval: 0}", NULL, SAVE_AUTO},
        {"checkpoint: {asynchronous: True, interval: 5}", NULL, SAVE_BACKGROUND},
        {"checkpoint: {asynchronous: true}", "checkpoint.interval_minutes=30", SAVE_BACKGROUND},
        {"checkpoint: {asynchronous: true, interval: 0, interval_minutes: 0.0}", NULL, SAVE_BACKGROUND},
        {"checkpoint: {asynchronous: FALSE, interval: 5}", NULL, SAVE_FOREGROUND},
        {"checkpoint: {interval_minutes: 1}", "checkpoint.asynchronous=auto", SAVE_AUTO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = right(cases[i].text, cases[i].set, NULL);
        assert_int_equal(c.checkpoint.asynchronous, cases[i].saving);
        char *text = config_text(&c);
        struct config again = right(text, NULL, NULL);
        assert_int_equal(again.checkpoint.asynchronous, cases[i].saving);
        free(text);
        config_free(&again);
        config_free(&c);
    }
}

static void resume(void **state) {
    (void)state;
    static const char *const may_differ[] = {
        "train.steps=99",
        "train.lr=0.5",
        "train.groups=[{match: 'layers.*', lr_scale: 2}]",
        "train={cautious_decay: true, decay_schedule: linear}",
        "train.warmup_steps=0",
        "train.micro_batch_size=2",
        "train.stop_at=3",
        "mesh={data: 2, tensor: 2, pipeline: 3, interleave: 2, delta: connection, sequence_parallel: true}",
        "mesh={overlap: false, narrow_sources: false, bucket: 1, small: 0}",
        "checkpoint.files=node",
        "device=cpu",
        "checkpoint.keep=9",
        "train.recompute=none",
        "train.eval_interval=5",
        "data.sources=[{path: moved, weight: 1}, {path: b, weight: 2}]",
    };
    for (size_t i = 0; i < sizeof may_differ / sizeof *may_differ; i++) resumes(may_differ[i], NULL, NULL);
    resumes("train.seed=4", "train.seed", "is 4, in the checkpoint 3");
    resumes("train.batch_size=8", "train.batch_size", "is 8, in the checkpoint 4");
    resumes("train.sequence_length=8", "train.sequence_length", "is 8, in the checkpoint 32");
    resumes("data.order=sequential", "data.order", "is sequential, in the checkpoint shuffle");
    resumes("data.validation_fraction=0.5", "data.validation_fraction", "is 0.5, in the checkpoint 0.0");
    resumes("data.sources=[{path: a, weight: 1}, {path: b, weight: 3}]", "data.sources[1].weight",
            "is 3, in the checkpoint 2");
    resumes("data.sources=[{path: elsewhere, weight: 1}]", "data.sources[1].weight",
            "is not there, in the checkpoint 2");
    resumes("model.delta.distances=[]", "model.delta.distances", "is [], in the checkpoint [1, 2, 3, 4]");
    resumes("model.delta.edges=[[1, 0], [3, 1]]", "model.delta.edges", "is [[1, 0], [3, 1]], in the checkpoint []");
    resumes("model.head_dim=16", NULL, NULL); /* what it is without */
    resumes("model.head_dim=8", "model.head_dim", "is 8, in the checkpoint 0");
    resumes("model.attention_bias=qkv", "model.attention_bias", "is qkv, in the checkpoint none");
    resumes("model.qk_norm=head", "model.qk_norm", "is head, in the checkpoint none");
    resumes("model.rope_scaling={kind: linear, factor: 2}", "model.rope_scaling.kind",
            "is linear, in the checkpoint none");
    resumes("model.norm_eps=1e-6", "model.norm_eps", "is 1.0e-06, in the checkpoint 1.0e-05");
    /* Many differences: each key is named, in five lines at most. */
    resumes("model={num_layers: 1, intermediate_size: 2, rope_theta: 3, norm_eps: 4, tie_embeddings: true, "
            "vocab_size: 999}",
            "model.tie_embeddings is true", "model.vocab_size is 999");

    /* A checkpoint of a build with other backends still compares; one with a broken configuration does
     * not. */
    struct config now = right("{}", NULL, NULL);
    assert_int_equal(config_match_resume(&now, "device: cuda\n"), GDN_OK);
    assert_int_equal(config_match_resume(&now, "device: 5\n"), GDN_INPUT);
    failure_has("the checkpoint's configuration, line 1: device");
    gdn_failure_clear();
    config_free(&now);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume),
        cmocka_unit_test(resume_with),
        cmocka_unit_test(saving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
