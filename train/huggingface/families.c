#include "train/huggingface/family.h"

#include <string.h>

#include "kernels/base/append.h"
#include "model/params/config.h"

static const struct family rows[] = {
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .bias_key = true,
     .whole = true,
     .absent = {{"rms_norm_eps", "1e-06"}, {"max_position_embeddings", "2048"}}},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .absent = {{"rms_norm_eps", "1e-06"},
                {"max_position_embeddings", "131072"},
                {"num_key_value_heads", "8"},
                {"sliding_window", "4096"}}},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .bias = BIAS_QKV,
     .window_switch = true,
     .absent = {{"rms_norm_eps", "1e-06"},
                {"max_position_embeddings", "32768"},
                {"num_key_value_heads", "32"},
                {"use_sliding_window", "false"}}},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .bias_key = true,
     .qk_norm = true,
     .window_switch = true,
     .absent = {{"rms_norm_eps", "1e-06"},
                {"max_position_embeddings", "32768"},
                {"num_key_value_heads", "32"},
                {"head_dim", "128"},
                {"use_sliding_window", "false"}}},
    {.model_type = "gdn",
     .architecture = "GdnForCausalLM",
     .own_code = true,
     .absent = {{"rms_norm_eps", "1e-05"}, {"max_position_embeddings", "2048"}}},
};
enum { ROWS = sizeof rows / sizeof *rows };

const struct family *family_row(int i) {
    return i < ROWS ? &rows[i] : NULL;
}

const struct family *family_of(const char *model_type) {
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].model_type, model_type)) return &rows[i];
    return NULL;
}

const char *family_words(void) {
    static char words[256];
    size_t used = 0;
    for (int i = 0; i < ROWS; i++)
        used = text_append(words, sizeof words, used, "%s%s",
                           i == 0          ? ""
                           : i == ROWS - 1 ? " or "
                                           : ", ",
                           rows[i].model_type);
    return words;
}
