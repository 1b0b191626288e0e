/* An element of a sample's row (train/step, model/pass): a token, with what the data say of it in the bits
 * above. C and CUDA. */
#ifndef GDN_MARKS_H
#define GDN_MARKS_H

#include <stdint.h>

enum {
    MARK_PADDING = INT32_MIN, /* as an input it is padding: it is no part of any document of the sample */
    MARK_DOCUMENT = 1 << 30,  /* it is the first of its document */
    MARK_UNCOUNTED = 1 << 29, /* as a target it does not count in the loss */
    MARK_TOKEN = MARK_UNCOUNTED - 1 /* the bits of the token itself: ids lie below 2^29 (model.vocab_size) */
};

#endif
