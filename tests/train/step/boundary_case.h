/* What the tests of compressed boundaries share. */
#ifndef GDN_TEST_BOUNDARY_CASE_H
#define GDN_TEST_BOUNDARY_CASE_H

/* At full rank, of a gradient's norm: factors and their product are sums of at most 24 terms, in each of up
 * to seven messages one after the other. Measured: at most a third. */
#ifdef GDN_DOUBLE
static const double FULL_RANK = 1e-13;
#else
static const double FULL_RANK = 3e-5;
#endif

static const char base[] =
    "model: {vocab_size: 257, hidden_size: 24, num_layers: 8, num_heads: 4,\n"
    "  intermediate_size: 32, delta: {distances: [1, 3, 6], hidden: 8, gate_hidden: 4}}\n"
    "train: {steps: 4, batch_size: 8, micro_batch_size: 1, sequence_length: 12,\n"
    "  lr: 0.01, warmup_steps: 0, eval_batches: 1}\n"
    "mesh: {bucket: 1024, small: 100}\n";

#endif
