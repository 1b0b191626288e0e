"""The configuration of a gated delta network for transformers (5.4 or later): config.json's keys.

Keys that mean what they mean in Llama's have Llama's names. gdn's own are

  delta             the connections, as section `model.delta` of a gdn configuration: {distances, kind, aggregate, …}
  rules             other rules between layers, as `model.rules`: [{kind, …}, …]
  active_distances  how many of delta.distances are introduced; null: all. The others have tensors, but are left out
  logit_softcap     c: logits become c tanh(logits/c); 0: they stay as they are
  attention_bias    none, qkv (queries, keys and values have biases) or all (the output projection too); false and true are none and all
  qk_norm           none, or head: queries and keys of each head have an RMSNorm before rotation

What is not understood is an error that names it. model/model.md has the mathematics, modeling_gdn.py the names of the tensors.
"""

import json

import transformers
from transformers import PreTrainedConfig

if tuple(int(number) for number in transformers.__version__.split(".")[:2]) < (5, 4):
    raise ImportError(f"gated delta networks need transformers 5.4 or later, this is {transformers.__version__}")

# Keys of `delta` and their defaults. What only training reads is kept, so that a model goes back to gdn as it came.
DELTA = dict(
    distances=[1, 2, 3, 4], edges=[], embedding_source=False, kind="bottleneck", hidden=32, gate_hidden=16, distance_scale="reciprocal",
    decay=0.1, normalize=False, epsilon=1e-3, temperature=1.0, aggregate="learned", attention_dim=16, attention_heads=4,
    stage_steps=0, regularizer="none", sparsity_weight=0.01, entropy_weight=0.001, l1_weight=0.0)

# Kinds of rules between layers, with their settings and defaults.
RULES = {
    "lane": dict(layers=[], period=1, lr_scale=10.0),
    "mix": {"form": "static", "place": "before", "sources": ["embedding"], "distances": [2, 3, 5, 9], "from": "state", "layers": [],
            "period": 1, "groups": 4, "hidden": 16, "lr_scale": 5.0},
    "dense": dict(form="static", place="before", channels=[], dilation=1, period=1, hidden=16, lr_scale=1.0),
    "value": dict(form="projected", sources=[0, "embedding"], distances=[], layers=[], period=1, lr_scale=5.0),
    "depth_attention": dict(form="residual", place="before", layers=[], period=1, block=1, lr_scale=10.0),
    "hyper": dict(form="static", streams=4, mixing="free", lr_scale=5.0),
}

# Settings that one form of a kind alone has.
FORMS = {"mix": ("gated", ("groups", "hidden")), "dense": ("dynamic", ("hidden",)), "value": ("projected", ("sources", "distances"))}

# What a key may be, where that is a word.
WORDS = {
    "delta.kind": ("bottleneck", "full", "adaptive"),
    "delta.aggregate": ("learned", "mean", "attention", "multihead"),
    "delta.distance_scale": ("reciprocal", "exponential", "none"),
    "mix.form": ("static", "gated"),
    "mix.place": ("before", "after", "query", "key", "value"),
    "mix.from": ("state", "added", "both"),
    "value.form": ("projected", "embedding", "residual"),
    "dense.form": ("static", "dynamic"),
    "dense.place": ("before", "head"),
    "dense.channels": ("query", "key", "value"),
    "depth_attention.form": ("residual", "published"),
    "depth_attention.place": ("before", "value"),
    "hyper.form": ("static", "dynamic"),
    "hyper.mixing": ("free", "doubly_stochastic"),
    "attention_bias": ("none", "qkv", "all"),
    "qk_norm": ("none", "head"),
}

# Keys of section `model` of a gdn configuration and their names here; None: from_gdn says what becomes of them.
NAMES = dict(
    vocab_size="vocab_size", hidden_size="hidden_size", num_layers="num_hidden_layers", num_heads="num_attention_heads",
    num_kv_heads="num_key_value_heads", head_dim="head_dim", intermediate_size="intermediate_size", norm_eps="rms_norm_eps",
    tie_embeddings="tie_word_embeddings", attention_bias="attention_bias", qk_norm="qk_norm", logit_softcap="logit_softcap",
    delta="delta", rules="rules", rope_theta=None, rope_scaling=None, exit=None)

# Keys of `model.exit` and of `model.rope_scaling`, and their defaults.
EXIT = dict(layers=[], weights=[], curriculum="none")
ROPE_SCALING = dict(
    kind="none", factor=1.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)

# Kinds of model.rope_scaling, the rope_type of each, and its settings.
ROPE = {
    "none": ("default", ()),
    "linear": ("linear", ("factor",)),
    "llama3": ("llama3", ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")),
}


def known(what, given, defaults):
    """`given` over `defaults`, of which it may name no others."""
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise ValueError(f"{what} has no setting {unknown[0]}; it has {', '.join(defaults)}")
    merged = {**defaults, **given}
    for key, value in merged.items():
        for word in value if isinstance(value, (list, tuple)) else [value]:
            one_of(f"{what}.{key}", word)
    return {key: list(value) if isinstance(value, (list, tuple)) else value for key, value in merged.items()}


def one_of(key, value):
    if key in WORDS and value not in WORDS[key]:
        raise ValueError(f"{key} is {value!r}; it may be {', '.join(WORDS[key])}")


def rule_entry(entry):
    """An entry of `rules` with every default written out."""
    kind = entry.get("kind")
    if kind not in RULES:
        raise ValueError(f"rules has an entry of kind {kind!r}, which this version does not know; it knows {', '.join(RULES)}")
    settings = known(kind, {key: value for key, value in entry.items() if key != "kind"}, RULES[kind])
    form, others = FORMS.get(kind, (settings.get("form"), ()))
    return {"kind": kind, **{key: value for key, value in settings.items() if settings.get("form") == form or key not in others}}


def edges_left(pruning):
    """The connections that a run which prunes has left, as delta.edges: of the line "measured N", then of each "TARGET SOURCE LEFT AVERAGE"."""
    rows = [line.split() for line in pruning.splitlines()[1:]]
    return [[int(target), int(source)] for target, source, left, _ in rows if left != "0"]


def text_ends(data, carried):
    """Ids of the tokens that a text begins and ends with, as `gdn checkpoint export` finds them; None where none is known."""
    if "tokenizer.json" not in carried:
        are_bytes = data.get("format") in ("text", "jsonl") and data.get("tokenizer", "") in ("", "bytes")
        return (256, 256) if are_bytes else (None, None)
    tokenizer, names = json.loads(carried["tokenizer.json"]), json.loads(carried.get("tokenizer_config.json", "{}"))
    ids = {**tokenizer["model"]["vocab"], **{token["content"]: token["id"] for token in tokenizer.get("added_tokens", [])}}

    def find(member):
        name = names.get(member)
        name = name["content"] if isinstance(name, dict) else name
        if name is not None and name not in ids:
            raise ValueError(f"tokenizer_config.json: {member} is {name!r}, which is no token of tokenizer.json")
        return ids.get(name)

    first, last = find("bos_token"), find("eos_token")
    return last if first is None else first, last


class GdnConfig(PreTrainedConfig):
    model_type = "gdn"
    keys_to_ignore_at_inference = ["past_key_values"]

    def __init__(self, vocab_size=256, hidden_size=64, intermediate_size=176, num_hidden_layers=6, num_attention_heads=4,
                 num_key_value_heads=None, head_dim=None, rms_norm_eps=1e-5, rope_parameters=None, max_position_embeddings=2048,
                 attention_bias="none", attention_dropout=0.0, qk_norm="none", logit_softcap=0.0, initializer_range=0.02,
                 delta=None, active_distances=None, rules=None, tie_word_embeddings=False, use_cache=True, pad_token_id=None,
                 bos_token_id=None, eos_token_id=None, **kwargs):
        self.vocab_size, self.hidden_size, self.intermediate_size = vocab_size, hidden_size, intermediate_size
        self.num_hidden_layers, self.num_attention_heads = num_hidden_layers, num_attention_heads
        self.num_key_value_heads = num_key_value_heads or num_attention_heads
        self.head_dim = head_dim or hidden_size // num_attention_heads
        self.rms_norm_eps, self.max_position_embeddings = rms_norm_eps, max_position_embeddings
        self.rope_parameters = rope_parameters
        self.attention_bias = {False: "none", True: "all"}.get(attention_bias, attention_bias)
        self.attention_dropout, self.qk_norm, self.logit_softcap = attention_dropout, qk_norm, logit_softcap
        self.initializer_range, self.use_cache = initializer_range, use_cache
        delta = delta or {}
        self.delta = known("delta", {"distances": [], **delta} if delta.get("edges") else delta, DELTA)
        self.active_distances = active_distances
        self.rules = [rule_entry(entry) for entry in rules or []]
        self.tie_word_embeddings = tie_word_embeddings
        self.pad_token_id, self.bos_token_id, self.eos_token_id = pad_token_id, bos_token_id, eos_token_id
        self.check()
        super().__init__(tie_word_embeddings=tie_word_embeddings, pad_token_id=pad_token_id, bos_token_id=bos_token_id,
                         eos_token_id=eos_token_id, **kwargs)

    def check(self):
        """Impossible configurations are errors (model.md, 9)."""
        delta, heads = self.delta, self.num_attention_heads
        one_of("attention_bias", self.attention_bias)
        one_of("qk_norm", self.qk_norm)
        if heads % self.num_key_value_heads:
            raise ValueError(f"num_key_value_heads ({self.num_key_value_heads}) does not divide num_attention_heads ({heads})")
        if self.head_dim % 2:
            raise ValueError(f"head_dim ({self.head_dim}) is not even")
        distances = delta["distances"]
        if any(d < 1 for d in distances) or distances != sorted(set(distances)):
            raise ValueError(f"delta.distances ({distances}) are not increasing numbers from 1 on")
        edges = delta["edges"]
        if edges and (distances or delta["embedding_source"] or delta["stage_steps"]):
            raise ValueError("delta.edges stand alone, without distances, embedding_source and stage_steps")
        for i, edge in enumerate(edges): # [target, source]
            if not -1 <= edge[1] < edge[0] < self.num_hidden_layers or edge in edges[:i]:
                raise ValueError(f"delta.edges[{i}] ({edge}) is no connection from a layer, or -1, to one above it, or is there twice")
        groups, connected = delta["gate_hidden"], distances or edges
        if connected and delta["kind"] == "adaptive" and (groups < 2 or self.hidden_size % groups):
            raise ValueError(f"delta.gate_hidden ({groups}): an adaptive gate has two groups or more, which divide hidden_size "
                             f"({self.hidden_size})")
        if connected and delta["aggregate"] == "multihead" and self.hidden_size % delta["attention_heads"]:
            raise ValueError(f"delta.attention_heads ({delta['attention_heads']}) does not divide hidden_size ({self.hidden_size})")
        several = [entry for entry in self.rules if entry["kind"] == "hyper"]
        if any(entry["streams"] not in (2, 4, 8) for entry in several):
            raise ValueError(f"hyper.streams ({several[0]['streams']}) is not 2, 4 or 8")
        if several and (connected or len(self.rules) > 1):
            raise ValueError("rules: hyper has several residual streams and stands alone, without connections")
        if any(entry["kind"] == "dense" and entry["place"] == "head" and (entry["channels"] or entry["period"] > 1) for entry in self.rules):
            raise ValueError("rules: dense at place head has neither channels nor a period")
        if any(entry["kind"] == "depth_attention" and entry["place"] == "value" and entry["form"] == "published" for entry in self.rules):
            raise ValueError("rules: depth_attention of form published enters before the layer, not at its values")
        if delta["temperature"] <= 0:
            raise ValueError(f"delta.temperature ({delta['temperature']}) is not above 0")

    @classmethod
    def from_gdn(cls, settings, step=0, carried={}):
        """Of a gdn configuration (config.yaml, or a checkpoint's attribute `config`, read), after so many steps. `carried`: texts of the
        checkpoint's datasets pruning, tokenizer.json and tokenizer_config.json, those that it has."""
        model, train, data = (dict(settings.get(section) or {}) for section in ("model", "train", "data"))
        for key in model:
            if key not in NAMES:
                raise ValueError(f"model.{key} is not known to this version of GdnConfig")
        keys = {name: model[key] for key, name in NAMES.items() if name and key in model}
        known("model.exit", model.get("exit") or {}, EXIT) # left out: the last layer's logits do not depend on exits (model.md, 13)
        scaling = known("model.rope_scaling", model.get("rope_scaling") or {}, ROPE_SCALING)
        kind = scaling["kind"]
        if kind not in ROPE:
            raise ValueError(f"model.rope_scaling.kind is {kind!r}, which this version does not know; it knows {', '.join(ROPE)}")
        name, settings = ROPE[kind]
        keys["rope_parameters"] = {"rope_type": name, "rope_theta": float(model.get("rope_theta", 10000.0)),
                                   **{key: scaling[key] for key in settings}}
        if "sequence_length" in train:
            keys["max_position_embeddings"] = train["sequence_length"]
        delta = keys["delta"] = dict(keys.get("delta") or {})
        if "pruning" in carried:
            delta |= dict(distances=[], edges=edges_left(carried["pruning"]), embedding_source=False, stage_steps=0)
        stage_steps = delta.get("stage_steps", 0)
        if stage_steps > 0: # distances that the last step had
            active = (max(step, 1) - 1) // stage_steps + 1
            keys["active_distances"] = active if active < len(delta["distances"]) else None
        keys["bos_token_id"], keys["eos_token_id"] = text_ends(data, carried)
        return cls(**keys)


GdnConfig.register_for_auto_class()
