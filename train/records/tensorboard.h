/* TensorBoard event files, written without TensorFlow or a protocol buffer library: TFRecord framing (length,
 * masked CRC-32C, data, masked CRC-32C) around the few Event fields that scalars need. Formats:
 * tensorflow/core/lib/io/record_writer.h, core/util/event.proto, core/framework/summary.proto. */
#ifndef GDN_TENSORBOARD_H
#define GDN_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>

struct tensorboard {
    int file; /* descriptor; −1: closed */
    char path[4096];
    int status; /* first failure; once set, nothing more is written */
};

struct scalar {
    const char *tag; /* "train/loss": TensorBoard groups by what stands before the slash */
    double value;
};

/* Creates a new event file in `directory`/tensorboard (made where it is missing). Every start of a run has a
 * file of its own; `step` is the first step it will hold, and TensorBoard drops what older files say from
 * there on. Not collective. GDN_INPUT where it cannot be written. */
int tensorboard_open(const char *directory, int64_t step, struct tensorboard *board);
void tensorboard_close(struct tensorboard *board);

/* Appends one event of `count` scalars (at most 16). Does nothing on a closed `board`. GDN_INTERNAL where
 * writing fails. */
int tensorboard_write(struct tensorboard *board, int64_t step, const struct scalar *scalars, int count);

/* The run goes on from `step` once more: TensorBoard drops what was said from there on. Does nothing on a
 * closed `board`. GDN_INTERNAL where writing fails. */
int tensorboard_go_back(struct tensorboard *board, int64_t step);

/* CRC-32C (Castagnoli) of a buffer, as the framing needs it before masking. */
uint32_t tensorboard_crc32c(const void *bytes, size_t count);

#endif
