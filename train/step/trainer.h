/* What a training step is computed by, on this rank. */
#ifndef GDN_TRAINER_H
#define GDN_TRAINER_H

#include "dist/sync/sync.h"
#include "model/model.h"
#include "train/optimizer/optimizer.h"
#include "train/step/execute.h"
#include "train/step/nan_trace.h"

struct trainer {
    struct model *model;
    struct sync *sync;
    int64_t sync_bytes; /* its scratch */
    struct optimizer optimizer;
    struct executor *executor;
    struct nan_trace nan_trace;
    struct verdict verdict; /* of the last step, where it was traced */
};

#endif
