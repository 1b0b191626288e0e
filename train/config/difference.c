/* Where two texts of a value differ: of a long list the entry, of a mapping in it the member. */
#include <string.h>

#include "kernels/base/append.h"
#include "train/config/private.h"

/* A part of a text. */
struct part {
    const char *at;
    size_t length;
};

static bool same(struct part a, struct part b) {
    return a.length == b.length && !memcmp(a.at, b.at, a.length);
}

/* The length of an entry or member: up to the comma behind it, or to the bracket that ends what it is in. */
static size_t item_length(const char *text) {
    int depth = 0;
    size_t i = 0;
    for (bool quoted = false; text[i]; i++) {
        if (quoted && text[i] == '\\' && text[i + 1])
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (quoted)
            continue;
        else if (!depth && strchr(",]}", text[i]))
            break;
        else
            depth += strchr("[{", text[i]) ? 1 : strchr("]}", text[i]) ? -1 : 0;
    }
    return i;
}

/* Item number `index` of a list or mapping, of no length behind the last. */
static struct part item(struct part of, int index) {
    const char *at = of.at + 1, *end = of.at + of.length - 1;
    for (; at < end && index; index--) {
        at += item_length(at);
        at += strspn(at, ", ");
    }
    return at < end ? (struct part){at, item_length(at)} : (struct part){end, 0};
}

/* How much of a mapping's member is its name, "kind: "; nothing of another text. */
static size_t name_length(struct part member) {
    const char *colon = memchr(member.at, ':', member.length);
    return colon ? (size_t)(colon - member.at) + 2 : 0;
}

/* Narrows both to the first item that differs, and appends to the path which it is. False where they are no lists or
 * mappings, where one is empty, or where the mappings' members do not correspond. */
static bool descend(struct part *now, struct part *before, char path[SHOWN]) {
    const char open = *now->at;
    int index = 0;
    if (now->length <= 2 || before->length <= 2) return false;
    if (open != *before->at || !open || !strchr("[{", open)) return false;
    struct part a = item(*now, 0), b = item(*before, 0);
    for (; a.length && same(a, b); index++) a = item(*now, index + 1), b = item(*before, index + 1);
    if (open == '[') {
        text_append(path, SHOWN, strlen(path), "[%d]", index);
    } else {
        size_t name = name_length(a);
        if (!name || name != name_length(b) || memcmp(a.at, b.at, name) != 0) return false;
        const int quoted = *a.at == '"';
        text_append(path, SHOWN, strlen(path), ".%.*s", (int)name - 2 - 2 * quoted, a.at + quoted);
        a = (struct part){a.at + name, a.length - name};
        b = (struct part){b.at + name, b.length - name};
    }
    *now = a;
    *before = b;
    return true;
}

static bool too_long(struct part part) {
    return part.length > SHOWN - 4; /* shown() */
}

/* Bytes that two long texts begin alike with, less some to know the place by. */
static size_t alike(struct part a, struct part b) {
    enum { BEFORE = 40 };
    size_t n = 0;
    if (!too_long(a) && !too_long(b)) return 0;
    while (n < a.length && n < b.length && a.at[n] == b.at[n]) n++;
    n = n > BEFORE ? n - BEFORE : 0;
    while (n && ((unsigned char)a.at[n] & 0xc0) == 0x80) n--; /* not inside a UTF-8 character */
    return n;
}

static void show(struct part part, size_t skipped, char out[SHOWN]) {
    char text[2 * SHOWN];
    if (!part.length) part = (struct part){"not there", strlen("not there")};
    snprintf(text, sizeof text, "%s%.*s", skipped ? "..." : "", (int)(part.length - skipped), part.at + skipped);
    shown(text, out);
}

void difference_find(const char *path, const char *now, const char *before, struct difference *out) {
    struct part a = {now, strlen(now)}, b = {before, strlen(before)};
    snprintf(out->path, sizeof out->path, "%s", path);
    while ((too_long(a) || too_long(b)) && descend(&a, &b, out->path)) {}
    out->whole = !too_long((struct part){now, strlen(now)});
    show(a, alike(a, b), out->now);
    show(b, alike(a, b), out->before);
}
