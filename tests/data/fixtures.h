/* What the data tests share: a scratch folder, small files, and checks of streams and failures. */
#ifndef GDN_DATA_FIXTURES_H
#define GDN_DATA_FIXTURES_H

#include "data/format.h"
#include "kernels/base/status.h"
#include "tests/support/unit.h"

/* Set-up of a group: makes the scratch folder the working directory. */
int scratch_setup(void **state);

/* Test setup: forgets the failure of the test before. */
int clear_failure(void **state);

/* Writes a file of `size` bytes. */
void put_file(const char *path, const void *bytes, size_t size);
void put_text(const char *path, const char *text);

/* Writes a file of llm.c tokens: a header that says `magic`, `version` and `count`, then `bytes` bytes of
 * tokens. */
enum { LLMC_HEADER = 1024 }; /* bytes */
void put_llmc(const char *path, int32_t magic, int32_t version, int32_t count, const void *tokens,
              size_t bytes);

/* Cuts or extends a file; an extension takes no disk. */
void set_size(const char *path, long size);

/* Opens `pattern` and checks that its stream is `expected` [count], read as a whole and in pieces of two
 * sizes, small files token by token. */
void expect_stream(const char *pattern, const struct token_format *format, const int32_t *expected,
                   long count);

/* Opens `pattern` and returns its description. free() */
char *describe(const char *pattern, const struct token_format *format);

/* Checks that opening `pattern` fails with GDN_INPUT and words that contain `text`, several of them
 * separated by '|', and leaves no stream. Forgets the failure. */
void expect_open_fails(const char *pattern, const struct token_format *format, const char *text);

/* Checks that `status` is `expected` and the recorded failure contains `text` (as above). Forgets the
 * failure. */
void expect_failure(int status, int expected, const char *text);

/* An llm.c file whose token i is `base` + i. */
void put_counting(const char *path, uint32_t base, int32_t count);

#endif
