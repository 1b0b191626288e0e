/* The alphabet of byte-level tokenizers: a printable character for each byte. */
#ifndef GDN_TOKENIZER_BYTE_LEVEL_H
#define GDN_TOKENIZER_BYTE_LEVEL_H

#include <stdint.h>

/* Printable bytes stand for themselves, the others for characters from 256 on, in order. */
int32_t byte_level_character(unsigned char byte);
/* The byte of a character; −1 where it stands for none. */
int byte_level_byte(int32_t character);

#endif
