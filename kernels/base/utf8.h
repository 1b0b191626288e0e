/* UTF-8 as RFC 3629 has it. */
#ifndef GDN_UTF8_H
#define GDN_UTF8_H

#include <stddef.h>

/* How many bytes (1 to 4) the character at `at` has, of which `left` ≥ 1 bytes follow; 0 where they are no
 * UTF-8: overlong forms, halves of surrogates and what is beyond Unicode are none. */
size_t utf8_bytes(const char *at, size_t left);

#endif
