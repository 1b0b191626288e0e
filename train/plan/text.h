/* Figures of a plan in units that people read. */
#ifndef GDN_PLAN_TEXT_H
#define GDN_PLAN_TEXT_H

#include <stdint.h>

/* Each returns `out`, which holds at least 32 bytes. */

/* 1234567 as "1,234,567". */
const char *plan_grouped(int64_t value, char out[32]);

/* "12.3 us", "4.56 s", "7.8 min", "9.0 h", "12.3 days", "1.2 years". */
const char *plan_seconds(double seconds, char out[32]);

/* 4e14 and "FLOP/s" as "400 TFLOP/s". */
const char *plan_rate(double rate, const char *unit, char out[32]);

#endif
