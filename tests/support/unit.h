/* cmocka with the headers that it wants before itself. */
#ifndef GDN_TEST_UNIT_H
#define GDN_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
