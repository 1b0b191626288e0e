/* How many streams the residual stream is, and how wide these are together. */
#ifndef GDN_PARAMS_STREAM_H
#define GDN_PARAMS_STREAM_H

#include "model/params/config.h"

/* 1, but where a rule between layers has several. */
int stream_count(const struct model_config *config);
/* Elements a token of the stream: of what a layer passes on to later layers and stages, of what is kept of it
 * for connections, and of its gradients. Memory, messages and plans follow from it. What norms, mixers, MLPs
 * and the head read of the stream, and add to it, is hidden_size wide. */
long stream_width(const struct model_config *config);

#endif
