#include "train/records/tensorboard.h"

#include "kernels/base/status.h"
#include "kernels/base/write_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_SCALARS = 16,
    MAX_TAG = 96 /* "validation/loss/" and a name of 64 */,
    MAX_DATA = 128 + MAX_SCALARS * (MAX_TAG + 16)
};

/* Protocol buffers: a message is a list of fields, each a key (field number, wire type) and a value. */
enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* Field numbers of event.proto and summary.proto. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7
};
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, SESSION_STATUS = 1, SESSION_START = 1 };

struct bytes {
    size_t count;
    unsigned char data[MAX_DATA];
};

static void put(struct bytes *out, const void *data, size_t count) {
    memcpy(out->data + out->count, data, count);
    out->count += count;
}

static void put_little_endian(struct bytes *out, uint64_t value, int width) {
    for (int i = 0; i < width; i++) out->data[out->count++] = (unsigned char)(value >> 8 * i);
}

static void put_varint(struct bytes *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) out->data[out->count++] = (unsigned char)(value | 0x80);
    out->data[out->count++] = (unsigned char)value;
}

static void put_key(struct bytes *out, int field, enum wire wire) {
    put_varint(out, (uint64_t)field << 3 | wire);
}

static void put_double(struct bytes *out, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, WIRE_FIXED64);
    put_little_endian(out, bits, 8);
}

static void put_float(struct bytes *out, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, WIRE_FIXED32);
    put_little_endian(out, bits, 4);
}

static void put_integer(struct bytes *out, int field, int64_t value) {
    put_key(out, field, WIRE_VARINT);
    put_varint(out, (uint64_t)value);
}

static void put_bytes(struct bytes *out, int field, const void *data, size_t count) {
    put_key(out, field, WIRE_BYTES);
    put_varint(out, count);
    put(out, data, count);
}

uint32_t tensorboard_crc32c(const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

/* TFRecord masks its checksums, because a checksum of data that contains checksums is a weak one. */
static uint32_t masked(const void *bytes, size_t count) {
    uint32_t crc = tensorboard_crc32c(bytes, count);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* Frames an event and appends it in one write; cuts off what a full disk let through. */
static int write_record(struct tensorboard *board, const struct bytes *event) {
    struct bytes record = {0};
    put_little_endian(&record, event->count, 8);
    put_little_endian(&record, masked(record.data, 8), 4);
    put(&record, event->data, event->count);
    put_little_endian(&record, masked(event->data, event->count), 4);

    const int reason = write_whole_or_none(board->file, record.data, record.count);
    if (!reason) return 0;
    return board->status = gdn_fail(GDN_INTERNAL, "%s: cannot write: %s", board->path, strerror(reason));
}

static struct bytes new_event(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct bytes event = {0};
    put_double(&event, EVENT_WALL_TIME, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    return event;
}

/* A session start, at which readers drop what they have of that step and later ones. */
static int write_session(struct tensorboard *board, int64_t step) {
    struct bytes event = new_event(), session = {0};
    put_integer(&session, SESSION_STATUS, SESSION_START);
    put_integer(&event, EVENT_STEP, step);
    put_bytes(&event, EVENT_SESSION_LOG, session.data, session.count);
    return write_record(board, &event);
}

/* What every file starts with: its version, and a session start. */
static int write_head(struct tensorboard *board, int64_t step) {
    static const char version[] = "brain.Event:2";
    struct bytes event = new_event();
    put_bytes(&event, EVENT_FILE_VERSION, version, sizeof version - 1);
    TRY(write_record(board, &event));
    return write_session(board, step);
}

int tensorboard_open(const char *directory, int64_t step, struct tensorboard *board) {
    *board = (struct tensorboard){.file = -1};
    snprintf(board->path, sizeof board->path, "%s/tensorboard", directory);
    if (mkdir(board->path, 0777) && errno != EEXIST)
        return gdn_fail(GDN_INPUT, "%s: cannot create the directory: %s", board->path, strerror(errno));

    char host[256] = "";
    gethostname(host, sizeof host - 1);
    snprintf(board->path, sizeof board->path, "%s/tensorboard/events.out.tfevents.%010lld.%s.%ld", directory,
             (long long)time(NULL), host, (long)getpid());
    board->file = open(board->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (board->file < 0) return gdn_fail(GDN_INPUT, "%s: cannot create: %s", board->path, strerror(errno));
    if (!write_head(board, step)) return 0;
    unlink(board->path); /* nothing half written is left */
    tensorboard_close(board);
    return GDN_INPUT; /* as for whatever else cannot be written before training begins */
}

void tensorboard_close(struct tensorboard *board) {
    if (board->file >= 0) close(board->file);
    board->file = -1;
}

int tensorboard_go_back(struct tensorboard *board, int64_t step) {
    if (board->file < 0 || board->status) return board->status;
    return write_session(board, step);
}

int tensorboard_write(struct tensorboard *board, int64_t step, const struct scalar *scalars, int count) {
    if (board->file < 0 || board->status) return board->status;
    if (count > MAX_SCALARS)
        return gdn_fail(GDN_INTERNAL, "%d scalars in one event; at most %d fit", count, MAX_SCALARS);
    struct bytes summary = {0};
    for (int i = 0; i < count; i++) {
        struct bytes value = {0};
        put_bytes(&value, VALUE_TAG, scalars[i].tag, strnlen(scalars[i].tag, MAX_TAG));
        put_float(&value, VALUE_SIMPLE, (float)scalars[i].value);
        put_bytes(&summary, SUMMARY_VALUE, value.data, value.count);
    }
    struct bytes event = new_event();
    put_integer(&event, EVENT_STEP, step);
    put_bytes(&event, EVENT_SUMMARY, summary.data, summary.count);
    return write_record(board, &event);
}
