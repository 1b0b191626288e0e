/* The list of formats. */
#include "data/format.h"

const struct token_format *const token_formats[NUM_TOKENS_FORMATS] = {
    [TOKENS_TEXT] = &text_format,         [TOKENS_HDF5] = &hdf5_format,       [TOKENS_LLMC] = &llmc_format,
    [TOKENS_MEGATRON] = &megatron_format, [TOKENS_NANOGPT] = &nanogpt_format,
};

const char *tokens_format_name(enum tokens_format format) {
    return token_formats[format]->name;
}
