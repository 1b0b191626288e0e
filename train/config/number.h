/* Decimal numbers from text, as the configuration and the command line take them: whole text, decimal,
 * finite. */
#ifndef GDN_NUMBER_H
#define GDN_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* [+-]digits without leading zeros (010 is eight to some readers and ten to others), point or exponent. False
 * where the text is anything else or the value does not fit. */
bool number_long(const char *text, long *out);
bool number_unsigned(const char *text, uint64_t *out);

/* Digits with an optional point and exponent, without leading zeros. False for anything else (hex, inf, nan)
 * and for what a double cannot hold: beyond its range, or so small that it would read as 0. */
bool number_real(const char *text, double *out);

/* Whether a YAML reader takes the plain text for a number of any kind (0x10, 0o7, .inf and 007 too). */
bool number_like(const char *text);

/* Writes the shortest text that reads back as the same double; it always has a point, which YAML 1.1 readers
 * need before an exponent. `text` has room for NUMBER_TEXT characters. */
enum { NUMBER_TEXT = 40 };
void number_write(double value, char *text);

#endif
