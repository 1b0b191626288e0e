#include "data/format.h"

const struct token_format *const token_formats[NUM_TOKENS_FORMATS] = {
    [TOKENS_TEXT] = &text_format,         [TOKENS_HDF5] = &hdf5_format,       [TOKENS_LLMC] = &llmc_format,
    [TOKENS_MEGATRON] = &megatron_format, [TOKENS_NANOGPT] = &nanogpt_format,
};

const char *tokens_format_name(enum tokens_format format) {
    return token_formats[format]->name;
}

int format_read_raw(struct token_file *file, long first, long count, int32_t *out) {
    const uint8_t *raw = file->raw + (size_t)first * element_size(file->element);
    return elements_read(file->path, first, file->element, raw, count, out);
}

void format_close_map(struct token_file *file) {
    mapping_close(&file->map);
}
