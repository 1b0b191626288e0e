/* Names of tensors: gdn's "layers.3.mlp.up_proj.weight" is Hugging Face's
 * "model.layers.3.mlp.up_proj.weight"; the head alone is called the same. Private to this folder. */
#ifndef GDN_HUGGINGFACE_NAMES_H
#define GDN_HUGGINGFACE_NAMES_H

enum { NAME_LONGEST = 128 };

#define NAME_HEAD "lm_head.weight"
#define NAME_EMBEDDING "model.embed_tokens.weight"

/* Of gdn's; `out` is returned. */
const char *name_outside(const char *name, char out[NAME_LONGEST]);

#endif
