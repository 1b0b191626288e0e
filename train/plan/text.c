#include "train/plan/text.h"

#include <stdio.h>

const char *plan_grouped(int64_t value, char out[32]) {
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)value), at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

const char *plan_seconds(double seconds, char out[32]) {
    static const struct {
        double below, unit; /* seconds */
        const char *text;
    } units[] = {{1e-3, 1e-6, "%.1f us"},
                 {1, 1e-3, "%.1f ms"},
                 {120, 1, "%.2f s"},
                 {7200, 60, "%.1f min"},
                 {48 * 3600, 3600, "%.1f h"},
                 {730 * 86400.0, 86400, "%.1f days"},
                 {1e300, 365 * 86400.0, "%.3g years"}};
    int i = 0;
    while (seconds >= units[i].below && units[i].below < 1e300) i++;
    snprintf(out, 32, units[i].text, seconds / units[i].unit);
    return out;
}

const char *plan_rate(double rate, const char *unit, char out[32]) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z"};
    int i = 0;
    for (; i < 7 && rate >= 999.95; i++) rate /= 1000;
    snprintf(out, 32, "%.4g %s%s", rate, prefixes[i], unit);
    return out;
}
