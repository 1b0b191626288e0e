#include "data/format.h"

int format_read_raw(struct token_file *file, long first, long count, int32_t *out) {
    const uint8_t *raw = file->raw + (size_t)first * element_size(file->element);
    return elements_read(file->path, first, file->element, raw, count, out);
}

void format_close_map(struct token_file *file) {
    mapping_close(&file->map);
}
