"""Gated delta networks for transformers (5.4 or later): GdnForCausalLM, with a key/value cache, `generate` and gradients.

A transformer of Llama's kind whose layers are also told how their own state differs from outputs of layers before them, and may read
these in other ways (rules). gdn's model/model.md is the mathematics, whose sections comments name; configuration_gdn.py has the keys.
Dropout, regularisers, exits and the introduction of distances one by one belong to gdn's training and are not here.

Tensors have gdn's names (model.md, 8) behind `model.`, but for lm_head.weight; those of the trunk are then Llama's. Matrices are
[out, in]. D hidden_size, V vocab_size, F intermediate_size, H heads and K key/value heads of h channels, L a layer; of `delta` Hd
`hidden`, G `gate_hidden`:

  lm_head.weight [V, D]   unless tied        model.embed_tokens.weight [V, D]        model.norm.weight [D]
  model.layers.L.  input_layernorm.weight [D]    post_attention_layernorm.weight [D]
                   self_attn.{q_proj [H h, D], k_proj, v_proj [K h, D], o_proj [D, H h]}.weight, biases as attention_bias says,
                   self_attn.{q_norm, k_norm}.weight [h]   with qk_norm: head
                   mlp.{gate_proj, up_proj [F, D], down_proj [D, F]}.weight
  model.layers.L.delta.DISTANCE.   for every distance of `delta` up to L, with embedding_source up to L + 1, active or not, or of its edges into L
      bottleneck   delta_proj.weight [Hd, D]   gate_in.weight [G, D]   gate_in.bias [G]   gate_out.weight [Hd, G]   gate_out.bias [Hd]
                   output_proj.weight [D, Hd]
      full         gate.weight [D, D]
      adaptive     context_proj.weight [G, D]   gate_in.weight [G, G + 1]   gate_in.bias [G]   gate_out.weight [G, G]   gate_out.bias [G]
      and          scale [1] with normalize   mix [1] but for bottleneck with another aggregate than learned
  model.layers.L.delta.   of aggregate attention select.weight [attention_dim, D], of multihead query.weight and key.weight [D, D];
                          none where a layer has no connection
  model.layers.L.KIND.    of an entry of `rules`; of the second of a kind KIND_2. DISTANCE is L - the node's number, that of the
                          embedding's output being -1
      lane              lambda [1]   mu [1]
      mix               DISTANCE.gain [D]   DISTANCE.added.gain [D]; gated: in.weight [hidden, D]   DISTANCE.out.weight and
                        DISTANCE.added.out.weight [groups, hidden]
      dense             DISTANCE.weight [1]; dynamic: in.weight [hidden, D]   DISTANCE.out.weight [hidden]
                        of a channel DISTANCE.CHANNEL.weight, DISTANCE.CHANNEL.out.weight; at the head with the last layer's number
      value             DISTANCE.v_proj.weight [K h, D]   DISTANCE.gate.weight [K, min(12, D)]   DISTANCE.weight [1]
                        embedding: embed.weight [V, K h]   gate.weight [K, min(12, D)]   weight [1]
                        residual: as projected without v_proj, of the embedding's distance
      depth_attention   query [D]; residual: lambda [1]; at values: query [K h]   lambda [K]
      hyper             mixer. and mlp.: read, write [streams]   mixing [streams²]; dynamic: maps.weight [streams + 2, D]   scale [3]
"""

import json
import math
import os

import torch
import torch.nn.functional as F
from torch import nn
from transformers import GenerationMixin, PreTrainedModel
from transformers.cache_utils import DynamicCache
from transformers.masking_utils import create_causal_mask
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import (
    LlamaRMSNorm, LlamaRotaryEmbedding, apply_rotary_pos_emb, eager_attention_forward)
from transformers.utils import can_return_tuple

try: # loaded by transformers, the two files are a package; on Python's path they are not
    from .configuration_gdn import GdnConfig
except ImportError:
    from configuration_gdn import GdnConfig


def unit_rms(x, eps):
    """x / √(mean(x²) + eps), in float32."""
    wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


# ------------------------------------------------------------------------------------------- parameters
def linear(inputs, outputs, bias=False, std=None):
    """A map that starts as N(0, std), where that is given; else as config.initializer_range says."""
    module = nn.Linear(inputs, outputs, bias=bias)
    module.std = std
    return module


class Part(nn.Module):
    """What has parameters of its own that start as a number."""

    def __init__(self):
        super().__init__()
        self.starts = {}

    def parameter(self, name, size, start):
        self.starts[name] = start
        self.register_parameter(name, nn.Parameter(torch.full((size,), float(start))))

    def start(self):
        for name, value in self.starts.items():
            nn.init.constant_(getattr(self, name), value)


# ------------------------------------------------------------------------------------------- delta connections
SCALES = {
    "reciprocal": lambda distance, decay: 1.0 / (1.0 + decay * distance),
    "exponential": lambda distance, decay: math.exp(-decay * distance),
    "none": lambda distance, decay: 1.0,
}


class Connection(Part):
    """One gated delta connection (model.md, 2 and 3). A kind says in `contribution` what becomes of the delta."""

    def __init__(self, config, distance):
        super().__init__()
        delta = config.delta
        self.distance_scale = SCALES[delta["distance_scale"]](distance, delta["decay"])
        self.normalize, self.epsilon = delta["normalize"], delta["epsilon"]
        self.mixed = delta["aggregate"] == "learned" or delta["kind"] != "bottleneck"
        if self.normalize:
            self.parameter("scale", 1, math.sqrt(config.hidden_size))
        if self.mixed: # starts as no change, as a bottleneck does by its output_proj
            self.parameter("mix", 1, 1.0 if delta["kind"] == "bottleneck" else 0.0)

    def forward(self, source, target):
        delta = target - source
        if self.normalize:
            delta = delta / delta.norm(dim=-1, keepdim=True).clamp(min=self.epsilon) * self.scale
        c = self.contribution(delta, (source + target) / 2, self.distance_scale)
        return self.mix * c if self.mixed else c


class Bottleneck(Connection):
    """c = Wo (Wp δ ⊙ s g), g = σ(W2 silu(W1 (s+t)/2))."""

    def __init__(self, config, distance):
        super().__init__(config, distance)
        D, hidden, gate = config.hidden_size, config.delta["hidden"], config.delta["gate_hidden"]
        self.delta_proj = linear(D, hidden)
        self.gate_in = linear(D, gate, bias=True)
        self.gate_out = linear(gate, hidden, bias=True)
        self.output_proj = linear(hidden, D, std=0.0)

    def contribution(self, delta, middle, scale):
        gate = torch.sigmoid(self.gate_out(F.silu(self.gate_in(middle))))
        return self.output_proj(self.delta_proj(delta) * (gate * scale))


class Full(Connection):
    """c = δ ⊙ σ(s Wg δ)."""

    def __init__(self, config, distance):
        super().__init__(config, distance)
        self.gate = linear(config.hidden_size, config.hidden_size)

    def contribution(self, delta, middle, scale):
        return delta * torch.sigmoid(scale * self.gate(delta))


class Adaptive(Connection):
    """c = δ ⊙ s p, p a softmax over groups of neighbouring channels."""

    def __init__(self, config, distance):
        super().__init__(config, distance)
        groups = config.delta["gate_hidden"]
        self.temperature = config.delta["temperature"]
        self.context_proj = linear(config.hidden_size, groups)
        self.gate_in = linear(groups + 1, groups, bias=True)
        self.gate_out = linear(groups, groups, bias=True)

    def contribution(self, delta, middle, scale):
        magnitude = (delta.pow(2).mean(-1, keepdim=True) + self.epsilon).sqrt()
        hidden = F.silu(self.gate_in(torch.cat([magnitude, self.context_proj(middle)], dim=-1)))
        share = (self.gate_out(hidden) / self.temperature).softmax(-1)
        return delta * (share * scale).repeat_interleave(delta.shape[-1] // share.shape[-1], dim=-1)


GATES = {"bottleneck": Bottleneck, "full": Full, "adaptive": Adaptive}


class Connections(nn.Module):
    """The connections into a layer and their aggregate (model.md, 4): modules by distance, and what they share."""

    def __init__(self, config, layer):
        super().__init__()
        delta, D = config.delta, config.hidden_size
        reach = layer + (1 if delta["embedding_source"] else 0)
        listed = sorted(target - source for target, source in delta["edges"] if target == layer)
        there = listed or [d for d in delta["distances"] if d <= reach]
        active = listed or delta["distances"][:config.active_distances]
        self.layer, self.eps = layer, config.rms_norm_eps
        self.distances = [d for d in there if d in active]
        self.aggregate, self.heads = getattr(self, delta["aggregate"]), delta["attention_heads"]
        for d in there:
            self.add_module(str(d), GATES[delta["kind"]](config, d))
        if there and delta["aggregate"] == "attention":
            self.select = linear(D, delta["attention_dim"])
        if there and delta["aggregate"] == "multihead":
            self.query, self.key = linear(D, D), linear(D, D)

    def nodes(self):
        return [self.layer - d for d in self.distances]

    def forward(self, target, outputs):
        if not self.distances:
            return target
        sources = [outputs[node] for node in self.nodes()]
        parts = [self.get_submodule(str(d))(source, target) for d, source in zip(self.distances, sources)]
        return target + self.aggregate(target, sources, parts)

    def learned(self, target, sources, parts):
        return sum(parts)

    def mean(self, target, sources, parts):
        return sum(parts) / len(parts)

    def attention(self, target, sources, parts):
        query = self.select(unit_rms(target, self.eps)) # [B, S, a]
        keys = torch.stack([self.select(unit_rms(source, self.eps)) for source in sources], dim=-2) # [B, S, n, a]
        share = ((keys @ query.unsqueeze(-1)).squeeze(-1) / math.sqrt(query.shape[-1])).softmax(-1) # [B, S, n]
        return sum(share[..., i:i + 1] * part for i, part in enumerate(parts))

    def multihead(self, target, sources, parts):
        split = (self.heads, target.shape[-1] // self.heads)
        stacked = torch.stack(parts, dim=-2) # [B, S, n, D]
        query = self.query(target).unflatten(-1, split).unsqueeze(-3) # [B, S, 1, heads, D / heads]
        score = (query * self.key(stacked).unflatten(-1, split)).sum(-1) / math.sqrt(split[1]) # [B, S, n, heads]
        return (score.softmax(-2).unsqueeze(-1) * stacked.unflatten(-1, split)).sum(-3).flatten(-2)


# ------------------------------------------------------------------------------------------- rules between layers
class Rule(Part):
    """What an entry of `rules` does at one layer (model.md, 12): reads outputs[node] [B, S, D] of `nodes`, and changes the stream
    before the layer or after it, or queries, keys or values."""

    def __init__(self, config, entry, layer):
        super().__init__()
        self.eps, self.layer = config.rms_norm_eps, layer
        self.nodes = self.reads(entry, layer)

    @classmethod
    def there(cls, entry, layer):
        """Whether it enters the layer."""
        return bool(cls.reads(entry, layer)) or cls.reads_tokens(entry, layer)

    @staticmethod
    def enters(entry, layer):
        """Whether settings `layers` and `period` let it into the layer."""
        listed, period = entry.get("layers", []), entry.get("period", 1)
        return (not listed or layer in listed) and layer % period == period - 1

    @classmethod
    def reads(cls, entry, layer):
        """Numbers of the nodes that it reads there, by falling number; none: it does not enter the layer."""
        if not cls.enters(entry, layer):
            return []
        listed = [-1 if source == "embedding" else source for source in entry["sources"]]
        near = [layer - d for d in entry["distances"] if d <= layer]
        return sorted({node for node in near + listed if node < layer}, reverse=True)

    @classmethod
    def reads_tokens(cls, entry, layer):
        """Whether it enters the layer with the tokens, nodes or not."""
        return False

    def edge(self, node, module=None):
        """The module of a node's tensors, by their distance; made of `module`, where that is given."""
        name = str(self.layer - node)
        if module is not None:
            self.add_module(name, module)
        return self.get_submodule(name)

    def before(self, x, outputs):
        return x

    def after(self, y, outputs):
        return y

    def values(self, v, normed, outputs, tokens, own):
        """Values [B, S, K h], of the layer's normalised input; tokens [B, S]; own(x): the values that the layer has of a stream."""
        return v

    def input(self, which, x, outputs):
        """A stream whose norm queries, keys or values (`which`) are projected from in place of x, which the layer reads; None: that."""
        return None


class Lane(Rule):
    """x ← λ x + μ norm(x₀)."""

    def __init__(self, config, entry, layer):
        super().__init__(config, entry, layer)
        self.parameter("lambda", 1, 1.0)
        self.parameter("mu", 1, 0.0)

    @classmethod
    def reads(cls, entry, layer):
        return [-1] if cls.enters(entry, layer) else []

    def before(self, x, outputs):
        return self.get_parameter("lambda") * x + self.mu * unit_rms(outputs[-1], self.eps)


class Mix(Rule):
    """x ← x + Σ c ⊙ norm(u), before the layer or after it, or for its queries, keys or values alone: u the output of a node, or what its layer has added; c a vector, and
    with `gated` each token's own weights of groups of channels beside it."""

    def __init__(self, config, entry, layer):
        super().__init__(config, entry, layer)
        self.place, self.gated, self.width = entry["place"], entry["form"] == "gated", config.hidden_size // entry.get("groups", 1)
        if self.gated:
            if config.hidden_size % entry["groups"]:
                raise ValueError(f"groups of mix ({entry['groups']}) do not divide hidden_size ({config.hidden_size})")
            self.add_module("in", linear(config.hidden_size, entry["hidden"], std=0.02))
        self.terms = self.reads_of(entry, layer)
        for node, below in self.terms:
            part = Part()
            part.parameter("gain", config.hidden_size, 0.0)
            if self.gated:
                part.out = linear(entry["hidden"], entry["groups"], std=0.0)
            if below is None:
                self.edge(node, part)
            else:
                (self.edge(node) if str(layer - node) in self._modules else self.edge(node, Part())).added = part

    @classmethod
    def reads_of(cls, entry, layer):
        """Pairs of a node and the one that is taken off it, None: none. Below the embedding there is nothing."""
        which, terms = entry["from"], []
        for node in super().reads(entry, layer):
            terms += [(node, None)] if node < 0 or which != "added" else []
            terms += [(node, node - 1)] if node >= 0 and which != "state" else []
        return terms

    @classmethod
    def reads(cls, entry, layer):
        return sorted({node for term in cls.reads_of(entry, layer) for node in term if node is not None}, reverse=True)

    def add(self, x, outputs):
        out = x
        if self.gated:
            hidden = F.silu(self.get_submodule("in")(unit_rms(x, self.eps)))
        for node, below in self.terms:
            part = self.edge(node) if below is None else self.edge(node).added
            u = outputs[node] if below is None else outputs[node] - outputs[below]
            c = part.gain + part.out(hidden).repeat_interleave(self.width, dim=-1) if self.gated else part.gain
            out = out + c * unit_rms(u, self.eps)
        return out

    def before(self, x, outputs):
        return self.add(x, outputs) if self.place == "before" else x

    def after(self, y, outputs):
        return self.add(y, outputs) if self.place == "after" else y

    def input(self, which, x, outputs):
        return self.add(x, outputs) if which == self.place else None


class Dense(Rule):
    """x ← x + Σ a h, a a number, and with `dynamic` each token's own beside it; before the layer, with such sums for what `channels` are
    projected from, or behind the last for the head."""

    def __init__(self, config, entry, layer):
        super().__init__(config, entry, layer)
        self.dynamic, self.head, self.channels = entry["form"] == "dynamic", entry["place"] == "head", entry["channels"]
        if self.dynamic:
            self.add_module("in", linear(config.hidden_size, entry["hidden"], std=0.02))
        for node in self.nodes:
            edge = self.weights(self.edge(node, Part()), entry)
            for channel in self.channels:
                edge.add_module(channel, self.weights(Part(), entry))

    def weights(self, part, entry):
        part.parameter("weight", 1, 0.0)
        if self.dynamic:
            part.out = Part()
            part.out.parameter("weight", entry["hidden"], 0.0)
        return part

    @classmethod
    def reads(cls, entry, layer):
        if entry["place"] == "head": # behind the last layer, whose own output has weight 1
            return list(range(layer - entry["dilation"], -2, -entry["dilation"])) if layer == entry["last"] else []
        nodes = list(range(layer - 1, -2, -entry["dilation"]))
        return nodes if cls.enters(entry, layer) and len(nodes) > 1 else []

    def sum(self, x, outputs, part):
        for node in self.nodes:
            own = part(self.edge(node))
            x = x + (own.weight + self.hidden @ own.out.weight.unsqueeze(-1) if self.dynamic else own.weight) * outputs[node]
        return x

    def add(self, x, outputs):
        if self.dynamic:
            self.hidden = F.silu(self.get_submodule("in")(unit_rms(x, self.eps)))
        return self.sum(x, outputs, lambda edge: edge)

    def before(self, x, outputs):
        return x if self.head else self.add(x, outputs)

    def after(self, y, outputs):
        return self.add(y, outputs) if self.head else y

    def input(self, which, x, outputs):
        return self.sum(x, outputs, lambda edge: edge.get_submodule(which)) if which in self.channels else None


FIRST_VALUES = -2 # beside the numbers of nodes, of which the lowest is the embedding's, -1


class Value(Rule):
    """v ← v + Σ λ · 2σ(G n[:k]) ⊙ V, the gate a number for each key/value head; V is Wv norm(h), or with `embedding` the token's row of
    a table, or with `residual` the values that the first layer has of the embedding, outputs[FIRST_VALUES]."""

    def __init__(self, config, entry, layer):
        super().__init__(config, entry, layer)
        self.channels, self.heads, self.width = min(12, config.hidden_size), config.num_key_value_heads, config.head_dim
        self.embedding, self.residual = entry["form"] == "embedding", entry["form"] == "residual"
        if self.embedding:
            self.embed = nn.Embedding(config.vocab_size, self.heads * self.width)
            self.embed.std = config.initializer_range * math.sqrt(config.hidden_size)
            self.gated(self)
        if self.residual and self.nodes:
            self.edge(-1, self.gated(Part()))
        for node in [] if self.residual else self.nodes:
            self.edge(node, self.gated(Part())).v_proj = linear(config.hidden_size, self.heads * self.width)

    def gated(self, part):
        part.gate = linear(self.channels, self.heads, std=0.0)
        part.parameter("weight", 1, 0.0)
        return part

    @classmethod
    def reads(cls, entry, layer):
        if entry["form"] == "residual":
            return [FIRST_VALUES] if layer > 0 and cls.enters(entry, layer) else []
        return [] if entry["form"] == "embedding" else super().reads(entry, layer)

    @classmethod
    def reads_tokens(cls, entry, layer):
        return entry["form"] == "embedding" and cls.enters(entry, layer)

    def add(self, v, part, normed, more):
        gate = 2 * torch.sigmoid(part.gate(normed[..., :self.channels]))
        return v + part.weight * gate.repeat_interleave(self.width, dim=-1) * more

    def values(self, v, normed, outputs, tokens, own):
        if self.embedding:
            return self.add(v, self, normed, self.embed(tokens))
        if self.residual:
            return self.add(v, self.edge(-1), normed, outputs[FIRST_VALUES])
        for node in self.nodes:
            v = self.add(v, self.edge(node), normed, self.edge(node).v_proj(unit_rms(outputs[node], self.eps)))
        return v


class DepthAttention(Rule):
    """x ← x + λ (Σ p h − x), p each token's attention over nodes below and a null source; published: x ← Σ p h, without these.
    At place `value` each head by itself: v ← v + λ Σ p u, u the layer's own values of those nodes."""

    def __init__(self, config, entry, layer):
        super().__init__(config, entry, layer)
        self.published, self.at_values = entry["form"] == "published", entry["place"] == "value"
        self.heads = (config.num_key_value_heads, config.head_dim) if self.at_values else (1, config.hidden_size)
        self.parameter("query", math.prod(self.heads), 0.0)
        if not self.published:
            self.parameter("lambda", self.heads[0], 0.0)

    @classmethod
    def reads(cls, entry, layer):
        if layer == 0 or not cls.enters(entry, layer):
            return []
        return [node for node in range(layer - 1, -2, -1) if node == layer - 1 or (node + 1) % entry["block"] == 0]

    def before(self, x, outputs):
        if self.at_values:
            return x
        h = torch.stack([outputs[node] for node in self.nodes]) # [n, B, S, D]
        score = unit_rms(h, self.eps) @ self.query # [n, B, S]
        if self.published:
            return (score.softmax(0).unsqueeze(-1) * h).sum(0)
        return x + self.get_parameter("lambda") * (self.attended(score, h) - x)

    def attended(self, score, h):
        share = torch.cat([score, torch.zeros_like(score[:1])]).softmax(0)[:-1]
        return (share.unsqueeze(-1) * h).sum(0)

    def values(self, v, normed, outputs, tokens, own):
        if not self.at_values:
            return v
        u = torch.stack([own(outputs[node]) for node in self.nodes]).unflatten(-1, self.heads) # [n, B, S, K, h]
        score = (unit_rms(u, self.eps) * self.query.view(self.heads)).sum(-1)
        return v + (self.get_parameter("lambda").unsqueeze(-1) * self.attended(score, u)).flatten(-2)


class Hyper(Rule):
    """Streams x [B, S, n, D]: a block reads Σ r x, and x_o ← Σ M_oi x_i + w_o f of what it adds, f."""

    def __init__(self, config, entry, layer):
        super().__init__(config, entry, layer)
        n = self.streams = entry["streams"]
        self.dynamic, self.free = entry["form"] == "dynamic", entry["mixing"] == "free"
        for block in ("mixer", "mlp"):
            part = Part()
            for name, size in (("read", n), ("write", n), ("mixing", n * n)):
                part.parameter(name, size, 0.0)
            if self.dynamic:
                part.maps = linear(config.hidden_size, n + 2, std=0.0)
                part.parameter("scale", 3, 0.01)
            self.add_module(block, part)

    @classmethod
    def there(cls, entry, layer):
        return True

    @classmethod
    def reads(cls, entry, layer):
        return []

    def numbers(self, block, x):
        """r [..., n], w [..., n] and M [..., n to, n from]."""
        part, n = self.get_submodule(block), self.streams
        read, write, mixing = part.read, part.write, part.mixing.view(n, n)
        if self.dynamic:
            told = part.maps(unit_rms(x, self.eps)).tanh() # [B, S, n, n + 2]
            read, write = read + part.scale[0] * told[..., 0], write + part.scale[1] * told[..., 1]
            mixing = mixing + part.scale[2] * told[..., 2:].transpose(-1, -2)
        identity = torch.eye(n, dtype=x.dtype, device=x.device)
        mixing = identity + mixing if self.free else self.doubly_stochastic(4 * identity + mixing)
        return identity[(2 * self.layer + (block == "mlp")) % n] + read, 1 + write, mixing

    @staticmethod
    def doubly_stochastic(logits):
        m = logits.softmax(-1)
        for _ in range(10):
            m = m / m.sum(-2, keepdim=True)
            m = m / m.sum(-1, keepdim=True)
        return m

    def read(self, block, x):
        """What a block, "mixer" or "mlp", reads: [B, S, D]."""
        return (self.numbers(block, x)[0].unsqueeze(-1) * x).sum(-2)

    def write(self, block, x, added):
        """The streams behind the block, which adds [B, S, D]."""
        _, write, mixing = self.numbers(block, x)
        # rows of sum 1 by differences: what is alike stays so
        mixed = mixing @ x if self.free else x + (mixing.unsqueeze(-1) * (x.unsqueeze(-3) - x.unsqueeze(-2))).sum(-2)
        return mixed + write.unsqueeze(-1) * added.unsqueeze(-2)


def streams_of(config):
    """How many the residual stream is."""
    return next((entry["streams"] for entry in config.rules if "streams" in entry), 1)


KINDS = {"lane": Lane, "mix": Mix, "dense": Dense, "value": Value, "depth_attention": DepthAttention, "hyper": Hyper}


def rules_of(config, layer):
    """The rules that enter a layer, in order, by the name that their tensors have."""
    kinds, rules = [entry["kind"] for entry in config.rules], {}
    for i, entry in enumerate(config.rules):
        before, kind = kinds[:i].count(entry["kind"]), KINDS[entry["kind"]]
        entry = {**entry, "last": config.num_hidden_layers - 1}
        if kind.there(entry, layer):
            rules[entry["kind"] + (f"_{before + 1}" if before else "")] = kind(config, entry, layer)
    return rules


# ------------------------------------------------------------------------------------------- trunk
class GdnAttention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        D, columns = config.hidden_size, config.num_key_value_heads * config.head_dim
        rows = config.num_attention_heads * config.head_dim
        bias = config.attention_bias != "none"
        self.config, self.layer_idx, self.is_causal = config, layer, True
        self.head_dim, self.scaling = config.head_dim, config.head_dim**-0.5
        self.num_key_value_groups = config.num_attention_heads // config.num_key_value_heads
        self.q_proj, self.k_proj, self.v_proj = linear(D, rows, bias), linear(D, columns, bias), linear(D, columns, bias)
        self.o_proj = linear(rows, D, config.attention_bias == "all", std=deep(config))
        if config.qk_norm == "head":
            self.q_norm = LlamaRMSNorm(config.head_dim, eps=config.rms_norm_eps)
            self.k_norm = LlamaRMSNorm(config.head_dim, eps=config.rms_norm_eps)

    def map(self, which):
        return self.get_submodule(which[0] + "_proj")

    def forward(self, normed, position_embeddings, attention_mask, past_key_values, inlet, **kwargs):
        """`inlet` is what rules do to queries [B, S, H h], keys and values [B, S, K h]."""
        heads = (*normed.shape[:-1], -1, self.head_dim)
        query, key, value = (inlet(which, self.map(which)(normed)).view(heads) for which in ("query", "key", "value"))
        value = value.transpose(1, 2)
        if self.config.qk_norm == "head":
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = apply_rotary_pos_emb(query.transpose(1, 2), key.transpose(1, 2), *position_embeddings)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        out, shares = attend(self, query, key, value, attention_mask, scaling=self.scaling,
                             dropout=self.config.attention_dropout if self.training else 0.0, **kwargs)
        return self.o_proj(out.flatten(2)), shares


def deep(config):
    """The deviation that a layer's last maps start with."""
    return config.initializer_range / math.sqrt(2 * config.num_hidden_layers)


class GdnMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        D, hidden = config.hidden_size, config.intermediate_size
        self.gate_proj, self.up_proj = linear(D, hidden), linear(D, hidden)
        self.down_proj = linear(hidden, D, std=deep(config))

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class GdnDecoderLayer(GradientCheckpointingLayer):
    """A layer with all that enters it: reads the stream and the outputs of `nodes`, some of the nodes below it."""

    def __init__(self, config, layer):
        super().__init__()
        self.self_attn = GdnAttention(config, layer)
        self.mlp = GdnMLP(config)
        self.input_layernorm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.delta = Connections(config, layer)
        rules = rules_of(config, layer)
        self.rules = list(rules) # names, in order
        for name, rule in rules.items():
            self.add_module(name, rule)
        self.reads_tokens = any(getattr(rule, "embedding", False) for rule in rules.values())
        self.nodes = sorted({node for rule in rules.values() for node in rule.nodes} | set(self.delta.nodes()))

    def forward(self, x, *sources, position_embeddings, tokens=None, attention_mask=None, past_key_values=None, **kwargs):
        """x [B, S, D], of several streams [B, S, n, D], and outputs of `nodes`, in their order and by position, as recomputation wants
        them; tokens [B, S] where `reads_tokens`."""
        outputs = dict(zip(self.nodes, sources))
        rules = [self.get_submodule(name) for name in self.rules]
        for rule in rules:
            x = rule.before(x, outputs)
        around = next((rule for rule in rules if isinstance(rule, Hyper)), None)
        read = around.read if around else lambda block, x: x
        write = around.write if around else lambda block, x, added: x + added
        stream = read("mixer", x)
        normed = self.input_layernorm(stream)

        def values(x):
            return F.linear(self.input_layernorm(x), self.self_attn.v_proj.weight)

        def inlet(which, h):
            for rule in rules:
                own = rule.input(which, stream, outputs)
                if own is not None:
                    h = h + F.linear(self.input_layernorm(own) - normed, self.self_attn.map(which).weight)
                if which == "value":
                    h = rule.values(h, normed, outputs, tokens, values)
            return h

        mixed, shares = self.self_attn(normed, position_embeddings, attention_mask, past_key_values, inlet, **kwargs)
        x = write("mixer", x, mixed)
        y = write("mlp", x, self.mlp(self.post_attention_layernorm(read("mlp", x))))
        y = self.delta(y, outputs)
        for rule in rules:
            y = rule.after(y, outputs)
        return y, shares


class GdnPreTrainedModel(PreTrainedModel):
    config_class = GdnConfig
    config: GdnConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _no_split_modules = ["GdnDecoderLayer"]
    _skip_keys_device_placement = ["past_key_values"]
    _supports_flash_attn = True
    _supports_sdpa = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    def _init_weights(self, module):
        """As gdn starts (model.md, 7): connections and rules are no change to what the trunk computes."""
        super()._init_weights(module)
        if isinstance(module, Part):
            module.start()
        elif getattr(module, "std", None) is not None:
            nn.init.normal_(module.weight, mean=0.0, std=module.std)


class GdnModel(GdnPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([GdnDecoderLayer(config, layer) for layer in range(config.num_hidden_layers)])
        self.norm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.rotary_emb = LlamaRotaryEmbedding(config=config)
        self.gradient_checkpointing = False
        self.last_reader = {node: layer for layer, module in enumerate(self.layers) for node in module.nodes}
        self.post_init()

    @can_return_tuple
    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, inputs_embeds=None,
                use_cache=None, output_hidden_states=None, output_attentions=None, cache=None, **kwargs):
        past_key_values = cache_of(past_key_values, cache)
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds")
        if input_ids is None and any(module.reads_tokens for module in self.layers):
            raise ValueError("a rule between layers, value of form embedding, reads the tokens: give input_ids")
        x = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        use_cache = self.config.use_cache if use_cache is None else use_cache
        if self.gradient_checkpointing and self.training:
            use_cache = False
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        if position_ids is None:
            # behind what is in the cache; rotation sees differences of positions alone, so that padding moves none
            past = past_key_values.get_seq_length() if past_key_values is not None else 0
            position_ids = torch.arange(past, past + x.shape[1], device=x.device).unsqueeze(0)
        mask = create_causal_mask(config=self.config, inputs_embeds=x, attention_mask=attention_mask,
                                  past_key_values=past_key_values, position_ids=position_ids)
        turns = self.rotary_emb(x, position_ids=position_ids)

        states, shares = [x], []
        streams = streams_of(self.config)
        one = (lambda x: x.mean(-2)) if streams > 1 else lambda x: x # what a norm and head would read
        if streams > 1:
            x = torch.stack([x] * streams, dim=-2)
        outputs = {-1: x} # of nodes that a later layer reads
        if any(FIRST_VALUES in module.nodes for module in self.layers):
            outputs[FIRST_VALUES] = F.linear(self.layers[0].input_layernorm(x), self.layers[0].self_attn.v_proj.weight)
        for layer, module in enumerate(self.layers):
            x, share = module(x, *(outputs[node] for node in module.nodes), position_embeddings=turns, tokens=input_ids, attention_mask=mask,
                              past_key_values=past_key_values, position_ids=position_ids, **kwargs)
            outputs[layer] = x
            outputs = {node: h for node, h in outputs.items() if self.last_reader.get(node, -1) > layer}
            if wanted(output_hidden_states, self.config.output_hidden_states):
                states.append(one(x))
            if wanted(output_attentions, self.config.output_attentions):
                shares.append(share)
        x = self.norm(one(x))
        if len(states) > 1:
            states[-1] = x # the last is behind the norm, as everywhere in transformers
        return BaseModelOutputWithPast(last_hidden_state=x, past_key_values=past_key_values if use_cache else None,
                                       hidden_states=tuple(states) if len(states) > 1 else None,
                                       attentions=tuple(shares) or None)


def cache_of(past_key_values, cache):
    """The cache, whose name is the second in newer versions of transformers."""
    return past_key_values if cache is None else cache


def wanted(asked, configured):
    return configured if asked is None else asked


class GdnForCausalLM(GdnPreTrainedModel, GenerationMixin):
    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.model = GdnModel(config)
        self.vocab_size = config.vocab_size
        self.lm_head = linear(config.hidden_size, config.vocab_size)
        self.post_init()

    @can_return_tuple
    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, inputs_embeds=None,
                labels=None, use_cache=None, logits_to_keep=0, output_hidden_states=None, output_attentions=None, cache=None, **kwargs):
        """`labels` [B, S] give the mean cross entropy of each next token, -100 of none (num_items_in_batch: what the sum is
        divided by); `logits_to_keep`: logits of so many last tokens alone, 0 of all, or of those at the indices."""
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                         past_key_values=cache_of(past_key_values, cache), inputs_embeds=inputs_embeds, use_cache=use_cache,
                         output_hidden_states=output_hidden_states, output_attentions=output_attentions, return_dict=True, **kwargs)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits, cap = self.lm_head(out.last_hidden_state[:, kept]), self.config.logit_softcap
        if cap > 0:
            logits = cap * torch.tanh(logits / cap)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size, **kwargs)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=out.past_key_values,
                                      hidden_states=out.hidden_states, attentions=out.attentions)

    @classmethod
    def from_gdn(cls, path, **kwargs):
        """The model of a gdn checkpoint, read with h5py: a run directory (its newest), its checkpoints/best, a step_N directory or a
        checkpoint.h5. `kwargs`: dtype, attn_implementation. Checksums are not verified; `gdn checkpoint verify` does that."""
        try:
            import h5py
            import yaml
        except ImportError as error:
            raise ImportError(f"GdnForCausalLM.from_gdn needs {error.name}: pip install h5py pyyaml") from error
        path = find_checkpoint(os.fspath(path))
        with h5py.File(path, "r") as file:
            group = file.get("model", file.get("initial")) # a checkpoint; what checkpoint.init_from takes, too
            if group is None or "config" not in file.attrs:
                raise ValueError(f"{path} is no gdn checkpoint: it has no group model or no attribute config")
            text = file.attrs["config"]
            settings = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
            carried = {name: file[name][()].tobytes().decode() for name in ("pruning", "tokenizer.json", "tokenizer_config.json") if name in file}
            config = GdnConfig.from_gdn(settings, int(file.attrs.get("step", 0)), carried)
            model = cls._from_config(config, **kwargs)
            # norms of exits, and what is stored of connections that have gone
            model.fill(group, path, ("/exit_norm/", "/delta/") if "pruning" in carried else ("/exit_norm/",))
        for token in ("bos_token_id", "eos_token_id"):
            setattr(model.generation_config, token, getattr(config, token))
        return model.eval()

    @torch.no_grad()
    def fill(self, group, path, left_out):
        """Weights from a group of HDF5 that has each as a dataset under gdn's name; every tensor of either side has its like, but for those
        of the group's alone with a part of `left_out` in their names."""
        found = []
        group.visititems(lambda name, item: found.append(name) if hasattr(item, "shape") else None)
        names = {gdn_name(name).replace(".", "/"): tensor for name, tensor in self.named_parameters()}
        extra = {name for name in set(found) - set(names) if not any(part in name for part in left_out)}
        for what, some in (("lacks", set(names) - set(found)), ("has, unknown to its configuration,", extra)):
            if some:
                raise ValueError(f"{path} {what} {sorted(some)[0].replace('/', '.')}" + f" and {len(some) - 1} more" * (len(some) > 1))
        for name, tensor in names.items():
            has, want = tuple(group[name].shape), tuple(tensor.shape)
            if has != want:
                raise ValueError(f"{path}: {name.replace('/', '.')} is {has}, {want} by its configuration")
            tensor.copy_(torch.from_numpy(group[name][()]))


def gdn_name(name):
    """A tensor's name in a gdn checkpoint (model.md, 8), of that in a state dict."""
    return name.removeprefix("model.")


def find_checkpoint(path):
    """The checkpoint.h5 that a path means. In a run directory it is that of the step which checkpoints/latest names and which is marked
    so, else the newest (gdn's interfaces.md)."""
    if os.path.isfile(path) and os.path.basename(path) not in ("latest", "best"):
        return path
    if os.path.isfile(os.path.join(path, "checkpoint.h5")):
        return os.path.join(path, "checkpoint.h5")
    folder, word = os.path.join(path, "checkpoints"), "latest"
    if os.path.basename(path) in ("latest", "best") and not os.path.isdir(path):
        folder, word = os.path.split(path)
    steps = []
    if os.path.isdir(folder):
        steps = sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name, "checkpoint.h5")))
    marked = [name for name in steps if os.path.isfile(os.path.join(folder, name, word))]
    line = ""
    if os.path.isfile(os.path.join(folder, word)):
        with open(os.path.join(folder, word), encoding="utf-8") as file:
            line = file.readline().strip()
    if line in steps and (line in marked or not marked):
        chosen = line
    elif marked or (steps and word == "latest"):
        chosen = (marked or steps)[-1]
    else:
        raise FileNotFoundError(f"{path} is neither a gdn checkpoint nor a run directory with one")
    return os.path.join(folder, chosen, "checkpoint.h5")


GdnForCausalLM.register_for_auto_class("AutoModelForCausalLM")
