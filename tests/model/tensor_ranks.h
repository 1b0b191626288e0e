/* The ranks of mpirun as tensor ranks that divide a model among them, for tests that run on several. */
#ifndef GDN_TEST_TENSOR_RANKS_H
#define GDN_TEST_TENSOR_RANKS_H

#include "tests/model/fixture.h"

extern struct axis tensor;

/* What a test found wrong, counted, so that this rank goes on as the others do; no_failures fails the test
 * then, at its end. */
extern int failures;
void no_failures(void);

/* A whole model's layout, divided over the tensor axis in one of four ways: by channel or by connection, and
 * rows whole or divided. */
enum { WAYS = 4 };
struct layout divided_layout(int way);

#endif
