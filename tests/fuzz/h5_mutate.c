#include "h5_mutate.h"

#include <string.h>

/* libFuzzer's; without it (replay.c) nothing is changed. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));

/* HDF5's own (Bob Jenkins' lookup3); exported by the library, in no header. */
uint32_t H5_checksum_metadata(const void *data, size_t size, uint32_t initial);

enum {
    BLOCKS = 256,    /* that are looked after */
    GREATEST = 768,  /* bytes of such a block, but for object headers, which tell their length */
    SUPERBLOCK = 44, /* bytes of a superblock of version 2 or 3 before its checksum */
    NEAR = 96,       /* bytes around a block's beginning that are changed at once */
};

struct block {
    size_t at, length; /* the checksum's four bytes follow */
};

static bool is_signature(const uint8_t *at) {
    static const char *const known[] = {"OHDR", "OCHK", "FRHP", "FHDB", "FHIB", "FSHD", "FSSE", "BTHD",
                                        "BTIN", "BTLF", "SMTB", "SMLI", "EAHD", "EAIB", "EADB", "FAHD"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!memcmp(at, known[i], 4)) return true;
    return false;
}

static uint32_t stored(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static bool matches(const uint8_t *file, size_t size, const struct block *block) {
    if (block->at + block->length + 4 > size) return false;
    const uint8_t *at = file + block->at;
    return H5_checksum_metadata(at, block->length, 0) == stored(at + block->length);
}

/* The length that an object header of version 2 tells, without its checksum. */
static size_t header_length(const uint8_t *at, size_t left) {
    if (left < 48 || at[4] != 2) return 0;
    int flags = at[5], bytes = 1 << (flags & 3);
    size_t before = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    uint64_t length = 0;
    memcpy(&length, at + before, (size_t)bytes);
    return length < left ? before + (size_t)bytes + (size_t)length : 0;
}

static bool find_length(const uint8_t *file, size_t size, struct block *block) {
    if (!memcmp(file + block->at, "OHDR", 4)) {
        block->length = header_length(file + block->at, size - block->at);
        return block->length && matches(file, size, block);
    }
    for (block->length = 8; block->length < GREATEST; block->length++)
        if (matches(file, size, block)) return true;
    return false;
}

/* The blocks whose checksum is right. */
static int find_blocks(const uint8_t *file, size_t size, struct block blocks[BLOCKS]) {
    int count = 0;
    struct block first = {0, SUPERBLOCK};
    if (size > SUPERBLOCK + 4 && !memcmp(file, "\x89HDF", 4) && file[8] >= 2 && matches(file, size, &first))
        blocks[count++] = first;
    for (size_t at = 0; at + 12 < size && count < BLOCKS; at++) {
        struct block block = {.at = at};
        if (!is_signature(file + at) || !find_length(file, size, &block)) continue;
        blocks[count++] = block;
        at += block.length - 1;
    }
    return count;
}

size_t h5_mutate_plainly(uint8_t *data, size_t size, size_t max) {
    return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max) : size;
}

/* Changes bytes in one place, keeping everything else where it is. */
static void change_near(uint8_t *file, size_t size, size_t at, size_t length) {
    uint8_t part[NEAR];
    if (length > sizeof part) length = sizeof part;
    if (at >= size) return;
    if (length > size - at) length = size - at;
    memcpy(part, file + at, length);
    h5_mutate_plainly(part, length, length);
    memcpy(file + at, part, length);
}

size_t h5_mutate(uint8_t *file, size_t size, size_t max, unsigned seed) {
    struct block blocks[BLOCKS];
    int count = find_blocks(file, size, blocks);
    unsigned kind = seed % 16, number = seed / 16;
    if (kind == 0 || size < 64) return h5_mutate_plainly(file, size, max);
    if (kind < 10 && count) { /* in a block of metadata */
        const struct block *block = &blocks[number % (unsigned)count];
        size_t skip = (number / (unsigned)count) % (block->length + 1);
        size_t rest = block->length - skip;
        change_near(file, size, block->at + skip, rest < 16 ? rest + 1 : 16);
    } else { /* anywhere; files of the older format have most of their metadata at the beginning */
        size_t range = kind < 13 && size > 2048 ? 2048 : size;
        change_near(file, size, number % range, 1 + number % 24);
    }
    for (int i = 0; i < count; i++) {
        uint32_t sum = H5_checksum_metadata(file + blocks[i].at, blocks[i].length, 0);
        memcpy(file + blocks[i].at + blocks[i].length, &sum, sizeof sum);
    }
    return size;
}
