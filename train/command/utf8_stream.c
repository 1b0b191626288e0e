#include "train/command/utf8_stream.h"

#include <string.h>

#include "data/tokenizer/characters.h"
#include "kernels/base/status.h"

/* Bytes of the character that a byte begins; 0 where it begins none. */
static size_t size_of(unsigned char first) {
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* How many bytes at the end are the beginning of a character, as far as its first byte tells. */
static size_t unfinished(const struct text *text) {
    for (size_t back = 1; back <= 3 && back <= text->length; back++) {
        const unsigned char byte = (unsigned char)text->bytes[text->length - back];
        if ((byte & 0xc0) == 0x80) continue;
        return size_of(byte) > back ? back : 0;
    }
    return 0;
}

/* Prints all but the last `kept` bytes. */
static int print(struct text *waiting, size_t kept, FILE *out) {
    const size_t whole = waiting->length - kept;
    struct text repaired = {0};
    int status = whole ? characters_repair(waiting->bytes, whole, &repaired) : GDN_OK;
    if (!status && whole) {
        fwrite(repaired.bytes, 1, repaired.length, out);
        memmove(waiting->bytes, waiting->bytes + whole, kept);
        waiting->length = kept;
    }
    text_free(&repaired);
    return status;
}

int utf8_stream_put(struct utf8_stream *stream, const char *bytes, size_t length, FILE *out) {
    TRY(text_add(&stream->waiting, bytes, length));
    return print(&stream->waiting, unfinished(&stream->waiting), out);
}

int utf8_stream_end(struct utf8_stream *stream, FILE *out) {
    int status = print(&stream->waiting, 0, out);
    text_free(&stream->waiting);
    return status;
}
