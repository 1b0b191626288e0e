#include "dist/comm/axis_cover.h"

void axis_cover_begin(struct axis *axis, int64_t bytes) {
    struct axis_cover *c = axis->cover;
    if (!c) return;
    c->bytes += bytes, c->calls++;
    c->since = c->work();
}

void axis_cover_end(struct axis *axis) {
    struct axis_cover *c = axis->cover;
    if (!c) return;
    const double work = c->work() - c->since;
    if (c->bytes && work > 0) {
        c->hidden_bytes += c->bytes, c->hidden_calls += c->calls;
        c->covering += work;
    }
    c->bytes = 0, c->calls = 0;
}
