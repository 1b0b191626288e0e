/* How wide the residual stream is. */
#ifndef GDN_PARAMS_STREAM_H
#define GDN_PARAMS_STREAM_H

#include "model/params/config.h"

/* Elements a token of the stream: of what a layer passes on to later layers and stages, of what is kept of it
 * for connections, and of its gradients. Memory, messages and plans follow from it. What norms, mixers, MLPs
 * and the head read of the stream, and add to it, is hidden_size wide. */
long stream_width(const struct model_config *config);

#endif
