/* Helpers of the configuration's tests. */
#ifndef GDN_CONFIG_FIXTURE_H
#define GDN_CONFIG_FIXTURE_H

#include "train/config/config.h"

/* Parses YAML text that must be right, with at most two overrides (NULL: none). config_free. */
struct config right(const char *text, const char *first, const char *second);

/* Parses text, called "run.yaml", that must be refused, and checks that the message has all of the words
 * (ended by NULL), at most five lines, and no line that is empty. */
void refused(const char *text, const char *set, ...) __attribute__((sentinel));

/* Checks the recorded failure likewise and forgets it. */
void failure_has(const char *word);
void failure_is_short(void);

#endif
