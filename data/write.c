/* tokens_write: text files to a token file of another format. The text is read as the stream that tokens_open
 * makes of it, so that writing and reading cannot disagree about separators. */
#include "data/format.h"
#include "data/stream.h"
#include "kernels/base/status.h"

int tokens_write(const char *path, const struct token_format *format, const char *const *documents,
                 int num_documents) {
    char written[FORMAT_LIST];
    if (num_documents < 1) return gdn_fail(GDN_INPUT, "%s: no documents to write were given", path);
    struct tokens *text;
    TRY(tokens_open_files(documents, num_documents, &text_format, &text));
    int status = format->write ? format->write(path, text)
                               : gdn_fail(GDN_INPUT, "%s: text files are tokens as they are; write %s", path,
                                          token_format_list(FORMATS_WRITTEN, " or ", written));
    tokens_close(text);
    return status;
}
