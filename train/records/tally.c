#include "train/records/tally.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[TALLY_EVENTS] = {
    [TALLY_START] = "start",
    [TALLY_RESUME] = "resume",
    [TALLY_STEP] = "step",
    [TALLY_CHECKPOINT] = "checkpoint",
    [TALLY_CHECKPOINT_FAILED] = "checkpoint_failed",
    [TALLY_SKIP] = "skip",
    [TALLY_SPIKE] = "spike",
    [TALLY_ALERT] = "alert",
};

void tallies_clear(struct tallies *tallies) {
    for (int i = 0; i < TALLY_EVENTS; i++) tallies->of[i] = (struct tally){.step = -1};
}

/* The number behind the last (or first) comma that `key` follows; `otherwise` where there is none. A line is
 * ended by a newline or brace, so that strtod stops within it. */
static double number_behind(const char *line, size_t length, const char *key, bool last, double otherwise) {
    size_t width = strlen(key);
    for (size_t i = 0; i + width < length; i++) {
        size_t at = last ? length - 1 - width - i : i;
        if (line[at] == ',' && !memcmp(line + at, key, width)) return strtod(line + at + width, NULL);
    }
    return otherwise;
}

/* Which event the line is one of, TALLY_EVENTS for any other. */
static int event_of(const char *name, size_t width, const char *line, size_t length) {
    static const char scale[] = "loss_scale", skipped[] = "step skipped\"";
    if (width == strlen(scale) && !memcmp(name, scale, width))
        return memmem(line, length, skipped, strlen(skipped)) ? TALLY_SKIP : TALLY_EVENTS;
    for (int i = 0; i < TALLY_EVENTS; i++)
        if (strlen(names[i]) == width && !memcmp(name, names[i], width)) return i;
    return TALLY_EVENTS;
}

void tallies_line(struct tallies *tallies, const char *line, size_t length) {
    static const char head[] = "{\"event\":\"";
    const size_t skip = sizeof head - 1;
    if (length <= skip || memcmp(line, head, skip)) return;
    const char *name = line + skip, *end = memchr(name, '"', length - skip);
    int event = end ? event_of(name, (size_t)(end - name), line, length) : TALLY_EVENTS;
    if (event == TALLY_EVENTS) return;
    struct tally *tally = &tallies->of[event];
    int64_t step = (int64_t)number_behind(line, length, ",\"step\":", false, -1);
    tally->count++;
    if (event != TALLY_STEP || step > tally->step) tally->step = step;
    tally->time = number_behind(line, length, ",\"time\":", true, 0);
}

int tallies_file(struct tallies *tallies, int file, int64_t size, char *buffer, size_t buffer_size) {
    size_t held = 0;
    bool passing = false; /* over the rest of a line that did not fit */
    for (int64_t at = 0; at < size;) {
        size_t room = buffer_size - held, left = (size_t)(size - at);
        ssize_t n = pread(file, buffer + held, left < room ? left : room, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? -1 : 0;
        at += n;
        held += (size_t)n;
        size_t begin = 0;
        for (char *end; (end = memchr(buffer + begin, '\n', held - begin));) {
            size_t next = (size_t)(end - buffer) + 1;
            if (!passing) tallies_line(tallies, buffer + begin, next - begin);
            passing = false;
            begin = next;
        }
        memmove(buffer, buffer + begin, held - begin);
        held -= begin;
        if (held == buffer_size) held = 0, passing = true;
    }
    return 0;
}
