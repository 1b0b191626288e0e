/* Unicode's normal forms, and lower case. Text is taken in runs: a character below the first that a form may
 * change, and those from there on that follow it. Such a character neither changes nor joins what stands
 * before it, so that runs are independent. */
#include <stdlib.h>
#include <utf8proc.h>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/normalizer.h"
#include "kernels/base/status.h"

static int32_t first_changed(int options) {
    return options & UTF8PROC_COMPAT ? 0xa0 : options & UTF8PROC_COMPOSE ? 0x300 : 0xc0;
}

static int form_run(const char *text, size_t length, int options, struct text *out) {
    utf8proc_uint8_t *changed;
    utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, &changed,
                                         (utf8proc_option_t)options);
    if (size < 0) return gdn_fail(GDN_INTERNAL, "a text has no normal form: %s", utf8proc_errmsg(size));
    int status = text_add(out, (const char *)changed, (size_t)size);
    free(changed);
    return status;
}

/* A run of plain characters is copied but for its last, which the next run begins with. */
int unicode_form_run(const struct normalizer *normalizer, OnigRegion *region, struct passage in,
                     struct text *out, size_t *out_head) {
    (void)region;
    int options = normalizer->kind->options;
    int32_t first = first_changed(options);
    size_t begin = out->length;
    for (size_t i = 0; i < in.length;) {
        size_t j = i, last = i, size;
        for (; j < in.length && character_at(in.text + j, &size) < first; j += size) last = j;
        size_t end = j, copied = j == in.length ? j : last;
        while (end < in.length && character_at(in.text + end, &size) >= first) end += size;
        TRY(text_add(out, in.text + i, copied - i));
        if (copied < end) TRY(form_run(in.text + copied, end - copied, options, out));
        i = end;
    }
    /* the head's own form: right but where a mark of the first character goes behind one of the second */
    size_t formed = out->length, size;
    *out_head = in.head == in.length ? formed - begin : 0;
    if (in.head && in.head < in.length) {
        TRY(form_run(in.text, in.head, options, out));
        size_t own = out->length - formed;
        out->length = formed;
        /* in whole characters of the text's form, and its first where the second has joined that */
        for (; begin + *out_head < formed; *out_head += size) {
            character_at(out->bytes + begin + *out_head, &size);
            if (*out_head && *out_head + size > own) break;
        }
    }
    return GDN_OK;
}

int lowercase_run(const struct normalizer *normalizer, OnigRegion *region, struct passage in,
                  struct text *out, size_t *out_head) {
    (void)normalizer, (void)region;
    size_t begin = out->length;
    *out_head = 0;
    TRY(text_reserve(out, in.length));
    for (size_t i = 0, size; i < in.length; i += size) {
        char lower[8];
        int32_t c = character_at(in.text + i, &size);
        size_t n = character_put(c == 0x130 ? 'i' : utf8proc_tolower(c), lower);
        if (c == 0x130) n += character_put(0x307, lower + n); /* the one that becomes two */
        TRY(text_add(out, lower, n));
        if (i < in.head) *out_head = out->length - begin;
    }
    return GDN_OK;
}
