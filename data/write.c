/* tokens_write: text files to a token file of another format. The text is read as the stream that tokens_open
 * makes of it, so that writing and reading cannot disagree about separators. */
#include <stdlib.h>

#include "data/format.h"
#include "data/output_tokens.h"
#include "data/stream.h"
#include "kernels/base/status.h"

/* A separator stands between documents, as the last token of all but the last. */
static int write_text(const char *path, const struct token_format *format, struct tokens *text) {
    int64_t *ends = malloc((size_t)text->num_files * sizeof *ends);
    if (!ends) return gdn_fail(GDN_INTERNAL, "%s: no memory for %d documents", path, text->num_files);
    for (int i = 0; i < text->num_files; i++) ends[i] = text->starts[i + 1];
    int status = format->write(path, &(struct written_tokens){.tokens = text,
                                                              .element = ELEMENT_UINT16,
                                                              .documents = text->num_files,
                                                              .ends = ends,
                                                              .separated = true,
                                                              .closing = TEXT_SEPARATOR});
    free(ends);
    return status;
}

int tokens_write(const char *path, const struct token_format *format, const char *const *documents,
                 int num_documents) {
    char written[FORMAT_LIST];
    if (num_documents < 1) return gdn_fail(GDN_INPUT, "%s: no documents to write were given", path);
    if (!format->write)
        return gdn_fail(GDN_INPUT, "%s: text files are tokens as they are; write %s", path,
                        token_format_list(FORMATS_WRITTEN, " or ", written));
    const struct output_inputs inputs = {"--output", documents, num_documents, "a document"};
    TRY(output_tokens_verify(format, path, &inputs));
    struct tokens *text;
    TRY(tokens_open_files(documents, num_documents, &text_format, &text));
    int status = write_text(path, format, text);
    tokens_close(text);
    return status;
}
