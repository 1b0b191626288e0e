#include "train/config/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a decimal number is made of. */
struct form {
    bool integer;      /* neither point nor exponent */
    bool leading_zero; /* 010, 00.5 */
    bool zero;         /* no digit but 0 before the exponent */
};

static bool scan(const char *text, struct form *form) {
    const char *at = text + (*text == '+' || *text == '-');
    size_t before = strspn(at, "0123456789");
    *form = (struct form){.integer = true, .leading_zero = before > 1 && *at == '0'};
    size_t mantissa = before;
    if (at[mantissa] == '.') {
        form->integer = false;
        mantissa += 1 + strspn(at + mantissa + 1, "0123456789");
        if (mantissa == 1) return false; /* a point alone */
    }
    if (mantissa == 0) return false;
    form->zero = strspn(at, "0.") >= mantissa;
    at += mantissa;
    if (*at == 'e' || *at == 'E') {
        form->integer = false;
        at += 1 + (at[1] == '+' || at[1] == '-');
        size_t digits = strspn(at, "0123456789");
        if (digits == 0) return false;
        at += digits;
    }
    return *at == 0;
}

bool number_long(const char *text, long *out) {
    struct form form;
    if (!scan(text, &form) || !form.integer || form.leading_zero) return false;
    errno = 0;
    *out = strtol(text, NULL, 10);
    return errno == 0;
}

bool number_unsigned(const char *text, uint64_t *out) {
    struct form form;
    if (!scan(text, &form) || !form.integer || form.leading_zero) return false;
    if (*text == '-' && !form.zero) return false; /* strtoull would wrap it around */
    errno = 0;
    unsigned long long value = strtoull(text, NULL, 10);
    *out = value;
    return errno == 0 && *out == value;
}

bool number_real(const char *text, double *out) {
    struct form form;
    if (!scan(text, &form) || form.leading_zero) return false;
    *out = strtod(text, NULL) + 0.0; /* -0 becomes 0 */
    return isfinite(*out) && (*out != 0 || form.zero);
}

bool number_like(const char *text) {
    struct form form;
    if (scan(text, &form)) return true;
    if (!strncmp(text, "0x", 2)) return text[2] && !text[2 + strspn(text + 2, "0123456789abcdefABCDEF")];
    if (!strncmp(text, "0o", 2)) return text[2] && !text[2 + strspn(text + 2, "01234567")];
    const char *at = text + (*text == '+' || *text == '-');
    return !strcasecmp(at, ".inf") || !strcasecmp(text, ".nan");
}

void number_write(double value, char *text) {
    char digits[NUMBER_TEXT];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) break;
    }
    size_t mantissa = strcspn(digits, "e");
    bool point = memchr(digits, '.', mantissa) != NULL;
    snprintf(text, NUMBER_TEXT, "%.*s%s%s", (int)mantissa, digits, point ? "" : ".0", digits + mantissa);
}
