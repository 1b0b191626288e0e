/* Whole numbers chosen on the command line: "3", "0,2,5-9". */
#ifndef GDN_RANGES_H
#define GDN_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { RANGES_MAX = 64 };

struct ranges {
    int count; /* 0: all numbers */
    struct {
        int64_t first, last;
    } range[RANGES_MAX];
};

/* Adds what `text` chooses, numbers of 0 or more. GDN_INPUT naming the option, the text and what is
 * expected. */
int ranges_take(const char *option, const char *text, struct ranges *ranges);

/* The one number alone. */
struct ranges ranges_one(int64_t number);

bool ranges_have(const struct ranges *ranges, int64_t number);

#endif
