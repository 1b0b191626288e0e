/* What `--json` prints: one value on one line, the last of standard output. */
#ifndef GDN_JSON_LINE_H
#define GDN_JSON_LINE_H

#include <jansson.h>
#include <stddef.h>

/* A number, or null where it is not finite, which JSON cannot say. NULL without memory. */
json_t *json_finite(double value);

/* `length` bytes as a string. What is no UTF-8 becomes U+FFFD, byte by byte. NULL without memory. */
json_t *json_bytes(const char *bytes, size_t length);

/* Prints the value, which it takes over, and a newline to standard output. GDN_INTERNAL where `value` is NULL
 * (no memory to make it) or it cannot be printed. */
int json_print_line(json_t *value);

#endif
