#include "dist/verify/private.h"
#include "kernels/base/status.h"

#include <stdarg.h>
#include <stdio.h>

int verify_wrong(const struct verifier *c, int rank, int action, const char *format, ...) {
    char text[160], why[300];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (action < 0) return gdn_fail(GDN_INTERNAL, "schedule of pipeline rank %d: %s", rank, why);
    action_text(&c->schedule->rank[rank].action[action], text);
    return gdn_fail(GDN_INTERNAL, "schedule of pipeline rank %d, action %d (%s): %s", rank, action, text,
                    why);
}
