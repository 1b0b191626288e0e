/* The numbers of llm.c's token files, for their reader and their writer. */
#ifndef GDN_FORMAT_LLMC_H
#define GDN_FORMAT_LLMC_H

enum {
    LLMC_HEADER_INTS = 256,
    LLMC_HEADER_BYTES = 4 * LLMC_HEADER_INTS,
    LLMC_MAGIC_UINT16 = 20240520,
    LLMC_VERSION_UINT16 = 1,
    LLMC_MAGIC_UINT32 = 20240801,
    LLMC_VERSION_UINT32 = 7,
};

#endif
