/* The ranks of mpirun as tensor ranks that divide a model among them, for tests that run on several. */
#ifndef GDN_TEST_TENSOR_RANKS_H
#define GDN_TEST_TENSOR_RANKS_H

#include "tests/model/fixture.h"
#include "tests/support/rank_main.h"

/* All ranks on a tensor axis: run_on_ranks(tests, tensor_create, tensor_free). tensor_create fails like
 * axis_create. Collective. */
extern struct axis tensor;
int tensor_create(void);
void tensor_free(void);

/* What a test found wrong, counted, so that this rank goes on as the others do; no_failures fails the test
 * then, at its end. */
extern int failures;
void no_failures(void);

/* A whole model's layout, divided over the tensor axis in one of four ways: by channel or by connection, and
 * rows whole or divided. */
enum { WAYS = 4 };
struct layout divided_layout(int way);

#endif
