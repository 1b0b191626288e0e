#include "kernels/base/append.h"

#include <stdarg.h>
#include <stdio.h>

size_t text_append(char *text, size_t size, size_t used, const char *format, ...) {
    va_list values;
    if (used + 1 >= size) return used;
    va_start(values, format);
    int count = vsnprintf(text + used, size - used, format, values);
    va_end(values);
    if (count < 0) return used;
    return used + (size_t)count < size ? used + (size_t)count : size - 1;
}
