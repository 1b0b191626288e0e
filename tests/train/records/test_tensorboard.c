/* Event files are taken apart again, byte by byte, with a decoder that shares nothing with the writer but the
 * formats' definition. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/records/tensorboard.h"

/* ------------------------------------------------------------------------------------------- decoder */

struct span {
    const unsigned char *at, *end;
};

static uint64_t take_fixed(struct span *in, int width) {
    uint64_t value = 0;
    assert_true(in->end - in->at >= width);
    for (int i = width; i-- > 0;) value = value << 8 | in->at[i];
    in->at += width;
    return value;
}

static uint64_t take_varint(struct span *in) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(in->at < in->end && shift < 64);
        value |= (uint64_t)(*in->at & 0x7F) << shift;
        if (!(*in->at++ & 0x80)) return value;
    }
}

static struct span take_bytes(struct span *in) {
    uint64_t count = take_varint(in);
    assert_true((uint64_t)(in->end - in->at) >= count);
    struct span out = {in->at, in->at + count};
    in->at += count;
    return out;
}

/* CRC-32C from its definition as a polynomial remainder, most significant bit first on mirrored bytes. */
static uint32_t mirrored(uint32_t x, int bits) {
    uint32_t y = 0;
    for (int i = 0; i < bits; i++) y |= (x >> i & 1) << (bits - 1 - i);
    return y;
}

static uint32_t remainder_crc(struct span in) {
    uint32_t crc = 0xFFFFFFFF;
    for (; in.at < in.end; in.at++) {
        crc ^= mirrored(*in.at, 8) << 24;
        for (int i = 0; i < 8; i++) crc = crc << 1 ^ (crc >> 31 ? 0x1EDC6F41 : 0);
    }
    return mirrored(crc, 32) ^ 0xFFFFFFFF;
}

static void check_crc(struct span data, uint32_t stored) {
    uint32_t unmasked = stored - 0xA282EAD8;
    assert_int_equal(remainder_crc(data), unmasked << 15 | unmasked >> 17);
}

static struct span take_record(struct span *in) {
    struct span header = {in->at, in->at + 8};
    uint64_t count = take_fixed(in, 8);
    check_crc(header, (uint32_t)take_fixed(in, 4));
    assert_true((uint64_t)(in->end - in->at) >= count + 4);
    struct span data = {in->at, in->at + count};
    in->at += count;
    check_crc(data, (uint32_t)take_fixed(in, 4));
    return data;
}

struct event {
    double time;
    int64_t step;
    char version[32];
    int session; /* status of a session log; 0: none */
    int count;
    struct {
        char tag[64];
        float value;
    } scalar[16];
};

static void take_scalar(struct span value, struct event *event) {
    int i = event->count++;
    while (value.at < value.end) {
        uint64_t key = take_varint(&value);
        if (key == (1 << 3 | 2)) {
            struct span tag = take_bytes(&value);
            snprintf(event->scalar[i].tag, sizeof event->scalar[i].tag, "%.*s", (int)(tag.end - tag.at),
                     (const char *)tag.at);
        } else {
            assert_int_equal(key, 2 << 3 | 5);
            uint32_t bits = (uint32_t)take_fixed(&value, 4);
            memcpy(&event->scalar[i].value, &bits, 4);
        }
    }
}

static struct event decode(struct span in) {
    struct event event = {0};
    while (in.at < in.end) {
        uint64_t key = take_varint(&in);
        if (key == (1 << 3 | 1)) {
            uint64_t bits = take_fixed(&in, 8);
            memcpy(&event.time, &bits, 8);
        } else if (key == (2 << 3 | 0)) {
            event.step = (int64_t)take_varint(&in);
        } else if (key == (3 << 3 | 2)) {
            struct span text = take_bytes(&in);
            snprintf(event.version, sizeof event.version, "%.*s", (int)(text.end - text.at),
                     (const char *)text.at);
        } else if (key == (7 << 3 | 2)) {
            struct span session = take_bytes(&in);
            assert_int_equal(take_varint(&session), 1 << 3 | 0);
            event.session = (int)take_varint(&session);
        } else {
            assert_int_equal(key, 5 << 3 | 2);
            struct span summary = take_bytes(&in);
            while (summary.at < summary.end) {
                assert_int_equal(take_varint(&summary), 1 << 3 | 2);
                take_scalar(take_bytes(&summary), &event);
            }
        }
    }
    return event;
}

/* --------------------------------------------------------------------------------------------- tests */

static void checksum(void **state) {
    (void)state;
    assert_int_equal(tensorboard_crc32c("123456789", 9),
                     0xE3069283); /* the check value of the CRC catalogues */
    unsigned char zeros[32] = {0};
    assert_int_equal(tensorboard_crc32c(zeros, 32), 0x8A9136AA); /* RFC 3720, B.4 */
}

static void reads_back(void **state) {
    (void)state;
    struct tensorboard board;
    time_t before = time(NULL);
    assert_int_equal(tensorboard_open(scratch(), 300, &board), 0);
    const struct scalar scalars[] = {{"train/loss", 2.5}, {"train/lr", 1e-3}};
    assert_int_equal(tensorboard_write(&board, 300, scalars, 2), 0);
    struct scalar many[16];
    for (int i = 0; i < 16; i++)
        many[i] = (struct scalar){"a/tag/of/quite/some/length/to/fill/the/buffer", i};
    assert_int_equal(tensorboard_write(&board, 5000000000, many, 16), 0);
    assert_int_equal(tensorboard_write(&board, 5000000001, &(struct scalar){"x", NAN}, 1), 0);
    assert_int_equal(tensorboard_go_back(&board, 301), 0);
    tensorboard_close(&board);

    static unsigned char bytes[1 << 16];
    assert_non_null(strstr(board.path, "/tensorboard/events.out.tfevents."));
    FILE *file = fopen(board.path, "rb");
    assert_non_null(file);
    struct span in = {bytes, bytes + fread(bytes, 1, sizeof bytes, file)};
    fclose(file);

    struct event event = decode(take_record(&in));
    assert_string_equal(event.version, "brain.Event:2");
    assert_true(event.time >= (double)before && event.time < (double)before + 60);
    event = decode(take_record(&in));
    assert_true(event.step == 300 && event.session == 1);
    event = decode(take_record(&in));
    assert_true(event.step == 300 && event.count == 2);
    assert_string_equal(event.scalar[0].tag, "train/loss");
    assert_true(event.scalar[0].value == 2.5f);
    assert_string_equal(event.scalar[1].tag, "train/lr");
    assert_true(event.scalar[1].value == 1e-3f);
    event = decode(take_record(&in));
    assert_true(event.step == 5000000000 && event.count == 16);
    assert_string_equal(event.scalar[15].tag, many[15].tag);
    assert_true(event.scalar[15].value == 15);
    event = decode(take_record(&in));
    assert_true(isnan(event.scalar[0].value));
    event = decode(take_record(&in));
    assert_true(event.step == 301 && event.session == 1 && event.count == 0);
    assert_true(in.at == in.end);
}

static void a_closed_one_is_silent(void **state) {
    (void)state;
    struct tensorboard board = {.file = -1};
    assert_int_equal(tensorboard_write(&board, 1, &(struct scalar){"x", 1}, 1), 0);
    assert_int_equal(tensorboard_go_back(&board, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksum),
        cmocka_unit_test(reads_back),
        cmocka_unit_test(a_closed_one_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
