/* The layout of Megatron's .idx file, for its reader and its writer. Little-endian, without padding:
 *
 *     9 bytes   magic "MMIDIDX\0\0"
 *     uint64    version, 1
 *     uint8     type code of the tokens in .bin
 *     uint64    n, number of sequences
 *     uint64    d, number of document indices: documents + 1
 *     int32 [n] tokens of each sequence
 *     int64 [n] where each sequence begins in .bin, in bytes
 *     int64 [d] index of each document's first sequence, and n at the end
 *     int8  [n] modes of the sequences; only in multimodal data, and unused here
 */
#ifndef GDN_FORMAT_MEGATRON_H
#define GDN_FORMAT_MEGATRON_H

#define MEGATRON_MAGIC "MMIDIDX\0" /* and the literal's own zero: 9 bytes */

enum {
    MEGATRON_MAGIC_BYTES = 9,
    MEGATRON_VERSION_AT = 9,
    MEGATRON_CODE_AT = 17,
    MEGATRON_SEQUENCES_AT = 18,
    MEGATRON_INDICES_AT = 26,
    MEGATRON_HEADER_BYTES = 34,
    MEGATRON_VERSION = 1,
    MEGATRON_UINT16 = 8,
};

/* `path` without .bin or .idx, and with `suffix` instead; free() it. NULL without memory. */
char *megatron_path(const char *path, const char *suffix);

#endif
