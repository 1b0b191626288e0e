"""Small models as Hugging Face's transformers makes them, and what they compute: make_huggingface.py OUT

For each a folder OUT/NAME as save_pretrained writes it, and OUT/NAME/golden.safetensors with `tokens` [n], `logits` [n, V]
(float32) and `greedy` [m], the likeliest tokens that follow the first eight. Weights are random and wide, so that attention
looks somewhere: the order of heads, of rotary pairs or of a tensor's rows shows in the logits.
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../model/huggingface"))
from configuration_gdn import GdnConfig  # noqa: E402
from modeling_gdn import GdnForCausalLM  # noqa: E402

SMALL = dict(vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=40, max_position_embeddings=64, bos_token_id=None, eos_token_id=None)


TINY = dict(vocab_size=31, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1,
            intermediate_size=24, max_position_embeddings=64)
DELTA = dict(distances=[1, 2], embedding_source=True, hidden=8, gate_hidden=4, attention_dim=4, attention_heads=2, decay=0.2,
             temperature=1.5)
RULES = [{"kind": "lane", "layers": [], "period": 1, "lr_scale": 10.0},
         {"kind": "mix", "place": "after", "sources": ["embedding"], "distances": [2], "layers": [], "period": 1, "lr_scale": 5.0},
         {"kind": "value", "sources": [0, "embedding"], "distances": [], "layers": [1, 2], "period": 1, "lr_scale": 5.0},
         {"kind": "dense", "form": "dynamic", "dilation": 1, "period": 1, "hidden": 4, "lr_scale": 1.0},
         {"kind": "mix", "place": "before", "sources": [0], "distances": [], "layers": [], "period": 2, "lr_scale": 5.0},
         {"kind": "depth_attention", "form": "residual", "layers": [], "period": 1, "block": 2, "lr_scale": 10.0},
         {"kind": "dense", "form": "static", "dilation": 2, "period": 1, "lr_scale": 1.0},
         {"kind": "depth_attention", "form": "published", "layers": [2], "period": 1, "block": 1, "lr_scale": 10.0}]
SUMS = [{"kind": "dense", "form": "dynamic", "place": "before", "channels": ["query", "key", "value"], "dilation": 1, "period": 1,
         "hidden": 4, "lr_scale": 1.0},
        {"kind": "dense", "form": "static", "place": "before", "channels": ["value"], "dilation": 2, "period": 1, "lr_scale": 1.0},
        {"kind": "dense", "form": "dynamic", "place": "head", "channels": [], "dilation": 1, "period": 1, "hidden": 3, "lr_scale": 1.0},
        {"kind": "dense", "form": "static", "place": "head", "channels": [], "dilation": 2, "period": 1, "lr_scale": 1.0},
        {"kind": "mix", "form": "gated", "place": "value", "sources": ["embedding"], "distances": [1], "from": "both", "layers": [], "period": 1,
         "groups": 2, "hidden": 3, "lr_scale": 5.0},
        {"kind": "depth_attention", "form": "residual", "place": "value", "layers": [], "period": 1, "block": 1, "lr_scale": 10.0}]


def widen(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            width = 0.1 if "embed" in name or "lm_head" in name else 0.2
            weight.copy_(1 + 0.3 * noise if "norm" in name or name.endswith(".scale") else width * noise)


def old_spelling(path):
    """As transformers 4 wrote it."""
    file = os.path.join(path, "config.json")
    config = json.load(open(file))
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    config["torch_dtype"] = config.pop("dtype")
    config.pop("head_dim", None)
    json.dump(config, open(file, "w"), indent=2, sort_keys=True)


def add_frequencies(path, theta):
    """And the rotary frequencies that it kept among the weights."""
    file = os.path.join(path, "model.safetensors")
    weights = load_file(file)
    size = SMALL["hidden_size"] // SMALL["num_attention_heads"]
    for layer in range(SMALL["num_hidden_layers"]):
        weights[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = theta ** (-torch.arange(0, size, 2) / size)
    save_file(weights, file, metadata={"format": "pt"})


def make(out, name, config, seed, dtype=torch.float32, old=False, **save):
    path = os.path.join(out, name)
    kind = GdnForCausalLM if isinstance(config, GdnConfig) else transformers.AutoModelForCausalLM
    model = GdnForCausalLM(config) if kind is GdnForCausalLM else kind.from_config(config)
    widen(model, seed)
    model.to(dtype).save_pretrained(path, **save)
    for name in os.listdir(path):
        if name == "generation_config.json" or name.endswith(".py"):
            os.remove(os.path.join(path, name))
    if old:
        old_spelling(path)
    model = kind.from_pretrained(path, dtype=torch.float32).eval()
    tokens = torch.randint(config.vocab_size, (1, 40), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        logits = model(tokens).logits[0]
        greedy = model.generate(tokens[:, :8], max_new_tokens=40, do_sample=False)[0, 8:]
    save_file({"tokens": tokens[0].int(), "logits": logits.contiguous(), "greedy": greedy.int()},
              os.path.join(path, "golden.safetensors"))


def main(out):
    make(out, "llama", transformers.LlamaConfig(**SMALL, rms_norm_eps=1e-5), 1)
    make(out, "llama-tied", transformers.LlamaConfig(
        **SMALL, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 500000.0}), 2,
        dtype=torch.bfloat16, old=True, max_shard_size="12KB")
    make(out, "llama-2", transformers.LlamaConfig(**SMALL), 3, old=True)
    add_frequencies(os.path.join(out, "llama-2"), 10000.0)
    make(out, "mistral", transformers.MistralConfig(**SMALL, sliding_window=None), 4, dtype=torch.float16)

    make(out, "llama-bias", transformers.LlamaConfig(**SMALL, attention_bias=True, head_dim=6), 7, dtype=torch.bfloat16)
    make(out, "qwen2", transformers.Qwen2Config(**SMALL, sliding_window=32, use_sliding_window=False), 8, dtype=torch.bfloat16)
    make(out, "qwen3", transformers.Qwen3Config(**SMALL, head_dim=12), 9, dtype=torch.bfloat16)
    scaling = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
    make(out, "llama-3.1", transformers.LlamaConfig(**SMALL, rope_parameters={"rope_theta": 500.0, **scaling}), 10, dtype=torch.bfloat16,
         old=True)
    make(out, "llama-linear", transformers.LlamaConfig(**SMALL, rope_parameters={
        "rope_theta": 10000.0, "rope_type": "linear", "factor": 2.5}), 11, dtype=torch.bfloat16)
    for kind in ("bottleneck", "full", "adaptive"):
        for aggregate in ("learned", "mean", "attention", "multihead"):
            for normalize in (False, True):
                name = f"gdn-{kind}-{aggregate}" + "-normalize" * normalize
                delta = {**DELTA, "kind": kind, "aggregate": aggregate, "normalize": normalize}
                make(out, name, GdnConfig(**TINY, delta=delta), 5, dtype=torch.bfloat16)
    for i, rules in enumerate((RULES[:4], RULES[4:], SUMS)):
        make(out, f"gdn-rules-{i + 1}", GdnConfig(**TINY, delta={**DELTA, "distance_scale": "exponential"}, rules=rules,
                                                  logit_softcap=2.0, tie_word_embeddings=True), 6, dtype=torch.bfloat16)


if __name__ == "__main__":
    main(sys.argv[1])
