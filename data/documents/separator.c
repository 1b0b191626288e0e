#include "data/documents/separator.h"

#include <jansson.h>
#include <string.h>

#include "data/tokenizer/fields.h"
#include "kernels/base/status.h"

static int find_named(const struct tokenizer *tokenizer, const char *name, const char *where, int32_t *out) {
    char words[QUOTED];
    *out = tokenizer_id(tokenizer, name, strlen(name));
    if (*out >= 0) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s: %s has no token '%s'", where, tokenizer_path(tokenizer),
                    quoted(name, words));
}

/* `member`, such as eos_token, is a text, or an object with the member `content`; null where there is none.
 */
static int of_configuration(const struct tokenizer *tokenizer, const char *text, const char *member,
                            int32_t *out) {
    static const char where[] = "tokenizer_config.json";
    json_error_t error;
    char words[QUOTED];
    json_t *root = json_loads(text, 0, &error);
    if (!root)
        return gdn_fail(GDN_INPUT, "%s beside %s: line %d: %s", where, tokenizer_path(tokenizer), error.line,
                        quoted(error.text, words));
    const json_t *token = json_object_get(root, member);
    const char *name = json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
    int status = GDN_OK;
    if (name)
        status = find_named(tokenizer, name, where, out);
    else if (token && !json_is_null(token))
        status = gdn_fail(GDN_INPUT, "%s beside %s: %s is neither a text nor an object with a content", where,
                          tokenizer_path(tokenizer), member);
    json_decref(root);
    return status;
}

int separator_find(const struct tokenizer *tokenizer, const struct carried *carried, const char *given,
                   int32_t *out) {
    *out = -1;
    if (given) return find_named(tokenizer, given, "--separator", out);
    if (!carried->file) return find_named(tokenizer, "<separator>", carried->name, out);
    if (!carried->configuration) return GDN_OK;
    return of_configuration(tokenizer, carried->configuration, "eos_token", out);
}

int separator_find_first(const struct tokenizer *tokenizer, const struct carried *carried, int32_t *out) {
    *out = -1;
    if (carried->configuration) TRY(of_configuration(tokenizer, carried->configuration, "bos_token", out));
    return *out >= 0 ? GDN_OK : separator_find(tokenizer, carried, NULL, out);
}
