/* Token files. The first eight bytes of an input say how the rest of it is read:
 *
 *     0     format (modulo 4, a row of the table), by bit 2 whether in shuffled order, by bit 5 with marks
 * where documents start 1     tokens of a sample less one 2, 3  vocabulary, low byte first, less one 4, 5
 * where the rest is cut in two files: of the same format, or a Megatron index and its tokens; 0: not 6 the
 * part of the stream that is used: from 0 … 15 to 0 … 15 sixteenths 7     seed */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/format.h"
#include "data/sampler.h"
#include "kernels/base/marks.h"
#include "h5_mutate.h"
#include "harness.h"

enum { HEAD = 8, ROWS = 3 };

/* Rows of samples, from several places. */
static void read_samples(struct sampler *sampler, long length, int vocab) {
    static int32_t rows[ROWS * (UCHAR_MAX + 2)];
    long epoch = sampler_epoch(sampler);
    const long first[] = {0, epoch - 1, epoch, 1l << 40};
    fuzz_check(epoch > 0, "sampler_epoch");
    for (int i = 0; i < 4; i++) {
        int right = fuzz_status(sampler_read(sampler, first[i], ROWS, vocab, rows), 1, "sampler_read");
        for (long t = 0; right && t < ROWS * (length + 1); t++)
            fuzz_check(rows[t] >= 0 && (rows[t] & MARK_TOKEN) < vocab, "a token outside the vocabulary");
    }
}

/* Tokens at the stream's ends. */
static void read_ends(struct tokens *tokens) {
    int32_t some[2];
    long count = tokens_count(tokens), in_file;
    fuzz_check(count > 0, "tokens_count");
    fuzz_status(tokens_read(tokens, 0, 1, some), 1, "tokens_read");
    fuzz_status(tokens_read(tokens, count - 1, 1, some), 1, "tokens_read");
    fuzz_check(tokens_place(tokens, count - 1, &in_file) && in_file >= 0, "tokens_place");
    fuzz_status(tokens_describe(tokens, fuzz_nowhere()), 1, "tokens_describe");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEAD) return 0;
    const uint8_t *rest = data + HEAD;
    const struct token_format *format = data[0] & 8 ? &nanogpt_format : token_format_of(data[0] & 3);
    long length = data[1] + 1;
    int vocab = (data[2] | data[3] << 8) + 1;
    size_t left = size - HEAD, cut = (size_t)(data[4] | data[5] << 8);
    if (cut > left) cut = left;
    const char *pattern;
    if (format == &megatron_format) {
        fuzz_write("tokens.idx", rest, cut);
        fuzz_write("tokens.bin", rest + cut, left - cut);
        pattern = fuzz_path("tokens");
    } else {
        fuzz_write("tokens.a", rest, cut ? cut : left);
        if (cut) fuzz_write("tokens.b", rest + cut, left - cut);
        pattern = fuzz_path(cut ? "tokens.[ab]" : "tokens.a");
    }

    struct tokens *tokens;
    if (fuzz_status(tokens_open(pattern, format, &tokens), 1, "tokens_open")) {
        read_ends(tokens);
        tokens_close(tokens);
    }
    struct sampler_source source = {.files = ONE_PATH(pattern), .weight = 1};
    struct sampler_options options = {.sources = &source,
                                      .num_sources = 1,
                                      .format = format,
                                      .shuffle = data[0] & 4,
                                      .seed = data[7],
                                      .length = length,
                                      .documents = data[0] & 32,
                                      .from = (data[6] & 15) / 16.0,
                                      .to = (data[6] >> 4) / 15.0};
    struct sampler *sampler;
    if (fuzz_status(sampler_open(&options, &sampler), 1, "sampler_open")) {
        read_samples(sampler, length, vocab);
        sampler_close(sampler);
    }
    return 0;
}

/* HDF5's blocks of metadata carry checksums, which a change would not get past. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    bool hdf5 = size > HEAD && token_format_of(data[0] & 3) == &hdf5_format && seed % 8;
    if (!hdf5 || max <= HEAD) return h5_mutate_plainly(data, size, max);
    return HEAD + h5_mutate(data + HEAD, size - HEAD, max - HEAD, seed);
}
