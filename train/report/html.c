#include "train/report/html.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "train/records/progress.h"

/* Bytes of the printable character at `text`, 0 where there is none. */
static size_t character(const char *text) {
    unsigned char c = (unsigned char)text[0], next = c ? (unsigned char)text[1] : 0;
    size_t length = c < 0x80                ? 1
                    : c >= 0xc2 && c < 0xe0 ? 2
                    : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 0;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) return 0;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80) return 0;
    /* Control characters, overlong forms, surrogates, and marks that turn the direction of text around. */
    if (c == 0xc2 && next < 0xa0) return 0;
    if ((c == 0xe0 && next < 0xa0) || (c == 0xed && next >= 0xa0) || (c == 0xf0 && next < 0x90) ||
        (c == 0xf4 && next >= 0x90))
        return 0;
    if (c == 0xe2 && ((next == 0x80 && (unsigned char)text[2] >= 0xaa && (unsigned char)text[2] <= 0xae) ||
                      (next == 0x81 && (unsigned char)text[2] >= 0xa6 && (unsigned char)text[2] <= 0xa9)))
        return 0;
    return length;
}

void html_text(FILE *page, const char *text) {
    while (*text) {
        size_t length = character(text);
        switch (length == 1 ? *text : 0) {
        case '<':
            fputs("&lt;", page);
            break;
        case '>':
            fputs("&gt;", page);
            break;
        case '&':
            fputs("&amp;", page);
            break;
        case '"':
            fputs("&quot;", page);
            break;
        case '\'':
            fputs("&#39;", page);
            break;
        default:
            if (length)
                fwrite(text, 1, length, page);
            else
                fputs("\xef\xbf\xbd", page);
        }
        text += length ? length : 1;
    }
}

static char *unknown(char text[32]) {
    return strcpy(text, "\xe2\x80\x93");
}

/* Three or four digits, no more than the number has. */
static char *digits(double x, const char *unit, char text[32]) {
    double size = fabs(x);
    snprintf(text, 32, "%.*f%s", size >= 100 ? 0 : size >= 10 ? 1 : 2, x, unit);
    return text;
}

char *number_text(double x, char text[32]) {
    if (!isfinite(x)) return unknown(text);
    if (x != 0 && (fabs(x) < 1e-4 || fabs(x) >= 1e7))
        snprintf(text, 32, "%.3e", x);
    else
        snprintf(text, 32, fabs(x) >= 1000 ? "%.0f" : "%.4g", x);
    return text;
}

char *count_text(double x, char text[32]) {
    if (!isfinite(x)) return unknown(text);
    if (x >= 1e12) return number_text(x, text);
    if (x >= 1e9) return digits(x / 1e9, " G", text);
    if (x >= 1e6) return digits(x / 1e6, " M", text);
    if (x >= 1e4) return digits(x / 1e3, " k", text);
    snprintf(text, 32, x == floor(x) || x >= 100 ? "%.0f" : "%.3g", x);
    return text;
}

char *bytes_text(double x, char text[32]) {
    static const char *const unit[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    int u = 0;
    if (!isfinite(x)) return unknown(text);
    while (x >= 1024 && u < 4) x /= 1024, u++;
    if (u == 0) {
        snprintf(text, 32, "%.0f B", x);
        return text;
    }
    return digits(x, unit[u], text);
}

char *seconds_text(double x, char text[32]) {
    if (!isfinite(x)) return unknown(text);
    if (x == 0) return strcpy(text, "0 s");
    if (fabs(x) < 1e-3) return digits(x * 1e6, " \xc2\xb5s", text);
    if (fabs(x) < 1) return digits(x * 1e3, " ms", text);
    if (fabs(x) < 60) return digits(x, " s", text);
    progress_duration(x, text);
    return text;
}

char *percent_text(double x, char text[32]) {
    if (!isfinite(x)) return unknown(text);
    snprintf(text, 32, "%.1f%%", 100 * x);
    return text;
}

char *moment_text(double unix_seconds, char text[32]) {
    struct tm parts;
    time_t moment = isfinite(unix_seconds) && fabs(unix_seconds) < 1e12 ? (time_t)unix_seconds : 0;
    if (!moment || !gmtime_r(&moment, &parts) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S", &parts))
        return unknown(text);
    return text;
}
