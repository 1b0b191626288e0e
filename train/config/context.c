/* What does not go together with sequences that are cut over ranks. */
#include "train/config/private.h"
#include "train/config/rows.h"

const struct conflict *context_conflict(const struct config *config) {
    static const char key[] = "mesh.context";
    static const struct conflict uneven = {
        "each context rank has two pieces of a sequence, all of one length: sequence_length must be a multiple of "
        "2 x context",
        {key, KEY_PATH(train.sequence_length)}};
    static const struct conflict documents = {
        "documents that do not see each other need whole sequences on a rank: join is expected, or context 1",
        {key, KEY_PATH(data.documents)}};
    static const struct conflict dropped = {
        "what dropout drops is known of whole sequences alone: rates of 0 are expected, or context 1",
        {key, "train.dropout.residual", "train.dropout.attention", "train.dropout.gate"}};
    static const struct conflict stored = {
        "differences are stored of whole sequences: an interval of 0 is expected, or context 1",
        {key, KEY_PATH(delta_store.interval)}};
    static const struct conflict sources = {
        "compressed sources are factors of a rank's own tokens, so that losses would follow from context: 0 is "
        "expected, or context 1",
        {key, KEY_PATH(train.compress_sources)}};
    static const struct conflict boundary = {
        "what is compressed between stages are factors of a rank's own tokens, so that losses would follow from "
        "context: 0 is expected, or context 1",
        {key, KEY_PATH(mesh.compress_boundary)}};
    const int context = config->mesh.size[AXIS_CONTEXT];
    const struct dropout_config *dropout = &config->model.dropout; /* whole layers are left out anywhere */
    if (context == 1) return NULL;
    if (config->train.sequence_length % (2L * context)) return &uneven;
    if (config->data.documents == DOCUMENTS_MASK) return &documents;
    if (dropout->residual > 0 || dropout->attention > 0 || dropout->gate > 0) return &dropped;
    if (config->delta_store.interval) return &stored;
    if (config->train.compress_sources > 0) return &sources;
    return config->mesh.compress_boundary > 0 ? &boundary : NULL;
}
