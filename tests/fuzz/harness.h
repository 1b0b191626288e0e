/* What the fuzzers have in common. Each fuzz_*.c is one libFuzzer target: bytes are handed to a part of the
 * program that reads what others have made, and whatever they are it must answer with success or GDN_INPUT
 * and one message. The same files are linked with replay.c, without libFuzzer, for the test suite. Anything
 * else ends the process, as does whatever the sanitizers find. */
#ifndef GDN_TEST_FUZZ_H
#define GDN_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* libFuzzer's two entries. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* The status of a call: success, or GDN_INPUT with a message of one to `lines` lines of plain text, which is
 * cleared. Ends the process otherwise, naming `what`. Returns whether it was success. With GDN_FUZZ_TELL in
 * the environment each is printed. */
int fuzz_status(int status, int lines, const char *what);

/* Ends the process where `right` is false. */
void fuzz_check(int right, const char *what);

/* The scratch folder (support/scratch.h), in memory (/dev/shm) unless TMPDIR is set. */
const char *fuzz_folder(void);

/* The path of `name` in that folder, which may have folders of its own, in one of eight buffers used in
 * turn. */
const char *fuzz_path(const char *name);

/* Replaces the file `name` in the folder; its own folders must exist. */
void fuzz_write(const char *name, const void *bytes, size_t size);

/* Where printing goes. */
FILE *fuzz_nowhere(void);

#endif
