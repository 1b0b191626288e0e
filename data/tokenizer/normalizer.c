#include "data/tokenizer/normalizer.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "kernels/base/status.h"

static int prepend_open(const struct place *place, const json_t *object, struct normalizer *normalizer) {
    const char *text;
    size_t length;
    TRY(field_string(place, object, "prepend", &text, &length));
    return text_add(&normalizer->content, text, length);
}

static int prepend_run(const struct normalizer *normalizer, OnigRegion *region, struct passage in,
                       struct text *out, size_t *out_head) {
    (void)region;
    *out_head = in.head;
    if (!in.length) return GDN_OK;
    if (in.head) *out_head = in.head + normalizer->content.length;
    TRY(text_add(out, normalizer->content.bytes, normalizer->content.length));
    return text_add(out, in.text, in.length);
}

static int replace_open(const struct place *place, const json_t *object, struct normalizer *normalizer) {
    const char *text;
    size_t length;
    TRY(pattern_open(place, object, "pattern", &normalizer->pattern));
    TRY(field_string(place, object, "content", &text, &length));
    return text_add(&normalizer->content, text, length);
}

static int replace_run(const struct normalizer *normalizer, OnigRegion *region, struct passage in,
                       struct text *out, size_t *out_head) {
    struct search search = search_begin(&normalizer->pattern, region, in.text, in.length);
    size_t done = 0, begin = out->length;
    *out_head = 0;
    for (bool found = in.length; found;) {
        size_t start, end;
        TRY(search_next(&search, &start, &end, &found));
        if (!found) break;
        TRY(text_add(out, in.text + done, start - done));
        if (done < in.head) *out_head = out->length - begin - (start > in.head ? start - in.head : 0);
        TRY(text_add(out, normalizer->content.bytes, normalizer->content.length));
        /* what is put in stands for the last character that it replaces */
        if (end <= in.head) *out_head = out->length - begin;
        done = end;
    }
    if (done < in.head) *out_head = out->length - begin + in.head - done;
    return text_add(out, in.text + done, in.length - done);
}

static const struct normalizer_kind kinds[] = {
    {.type = "NFC", .known = "type", .options = UTF8PROC_STABLE | UTF8PROC_COMPOSE, .run = unicode_form_run},
    {.type = "NFD",
     .known = "type",
     .options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
     .run = unicode_form_run},
    {.type = "NFKC",
     .known = "type",
     .options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
     .run = unicode_form_run},
    {.type = "NFKD",
     .known = "type",
     .options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
     .run = unicode_form_run},
    {.type = "Lowercase", .known = "type", .run = lowercase_run},
    {.type = "Prepend", .known = "type prepend", .open = prepend_open, .run = prepend_run},
    {.type = "Replace", .known = "type pattern content", .open = replace_open, .run = replace_run},
};

static int take(const struct place *place, const json_t *object, void *input) {
    struct normalizers *normalizers = input;
    const void *kind;
    TRY(field_row(place, object, kinds, sizeof *kinds, sizeof kinds / sizeof *kinds, &kind));
    struct normalizer *rows = realloc(normalizers->row, (size_t)(normalizers->count + 1) * sizeof *rows);
    if (!rows) return gdn_fail(GDN_INTERNAL, "no memory for a normalizer");
    normalizers->row = rows;
    struct normalizer *row = &rows[normalizers->count++];
    *row = (struct normalizer){.kind = kind};
    TRY(fields_known(place, object, row->kind->known));
    return row->kind->open ? row->kind->open(place, object, row) : GDN_OK;
}

int normalizers_open(const struct place *place, const json_t *object, struct normalizers *out) {
    *out = (struct normalizers){0};
    return fields_each(place, object, "normalizers", take, out);
}

void normalizers_close(struct normalizers *normalizers) {
    for (int i = 0; i < normalizers->count; i++) {
        pattern_close(&normalizers->row[i].pattern);
        text_free(&normalizers->row[i].content);
    }
    free(normalizers->row);
    *normalizers = (struct normalizers){0};
}

int normalizers_run(const struct normalizers *normalizers, OnigRegion *region, struct passage in,
                    struct text buffer[2], struct passage *out) {
    for (int i = 0; i < normalizers->count; i++) {
        const struct normalizer *row = &normalizers->row[i];
        struct text *to = &buffer[i % 2];
        size_t head;
        to->length = 0;
        TRY(row->kind->run(row, region, in, to, &head));
        in = (struct passage){to->bytes ? to->bytes : "", to->length, head};
    }
    *out = in;
    return GDN_OK;
}
