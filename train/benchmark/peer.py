"""The same model in PyTorch, written for speed the way a user of PyTorch would: the peer that `gdn bench` is compared with.

Trunk and bottleneck connections of tests/golden/gdn_reference.py (aggregate `learned`, distance scale `reciprocal`), in
float32 or under autocast in bf16, with scaled_dot_product_attention, fused q/k/v and gate/up projections, fused AdamW and, with --compile,
torch.compile.  A step is what a training step is: forward, backward, clipping and the update.

  python3 peer.py                                   # the small shape, eager
  python3 peer.py --compile --layers 12 --width 768 --heads 12 --ffn 2048 --context 512 --batch 4
  python3 peer.py --device cuda --compile --precision bf16 --layers 16 --width 2048 --heads 16 --ffn 5632 --context 2048 --vocab 32768
  python3 peer.py --check [--compile]               # its losses against the executable specification's

Prints one JSON line: tokens per second (median of --steps steps after warming up), PyTorch's version and the settings.
"""

import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotate(x, cos, sin):
    """Rotary embedding, half-split, on [B, heads, S, hd]."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)
        o = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        return self.out(o.transpose(1, 2).reshape(B, S, D))


class MLP(nn.Module):
    def __init__(self, width, ffn):
        super().__init__()
        self.gate_up = nn.Linear(width, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, width, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class DirectConnections(nn.Module):
    """The bottleneck connections into one layer, one after the other (model: u = Wp δ, g = σ(W2 silu(W1 (s+t)/2)))."""

    def __init__(self, width, distances, hidden, gate_hidden, decay):
        super().__init__()
        self.distances = distances
        self.scale = [1 / (1 + decay * d) for d in distances]
        n = len(distances)
        self.project = nn.ModuleList(nn.Linear(width, hidden, bias=False) for _ in range(n))
        self.gate_in = nn.ModuleList(nn.Linear(width, gate_hidden) for _ in range(n))
        self.gate_out = nn.ModuleList(nn.Linear(gate_hidden, hidden) for _ in range(n))
        self.output = nn.ModuleList(nn.Linear(hidden, width, bias=False) for _ in range(n))
        self.mix = nn.Parameter(torch.ones(n))

    def forward(self, target, sources):
        total = target
        for i, source in enumerate(sources):
            u = self.project[i](target - source)
            g = torch.sigmoid(self.gate_out[i](F.silu(self.gate_in[i]((source + target) * 0.5))))
            total = total + self.output[i](u * g * (self.scale[i] * self.mix[i]))
        return total


class StackedConnections(nn.Module):
    """The same with the weights of a layer's n connections stacked: the target's half of all projections is one matrix
    product, the gates are one batched product, and the output projection of all is one more."""

    def __init__(self, width, distances, hidden, gate_hidden, decay):
        super().__init__()
        self.distances = distances
        self.hidden, self.gate_hidden, n = hidden, gate_hidden, len(distances)
        self.n = n
        self.register_buffer("scale", torch.tensor([1 / (1 + decay * d) for d in distances]).view(n, 1, 1), persistent=False)
        self.reads = nn.Parameter(torch.empty(n, hidden + gate_hidden, width))   # Wp, then W1
        self.gate_in_bias = nn.Parameter(torch.zeros(n, 1, gate_hidden))
        self.gate_out = nn.Parameter(torch.empty(n, gate_hidden, hidden))        # [in, out]
        self.gate_out_bias = nn.Parameter(torch.zeros(n, 1, hidden))
        self.output = nn.Parameter(torch.empty(n, hidden, width))                # [in, out]
        self.mix = nn.Parameter(torch.ones(n))

    def forward(self, target, sources):
        B, S, D = target.shape
        n, T, h = self.n, B * S, self.hidden
        of_target = (target.view(T, D) @ self.reads.view(-1, D).t()).view(T, n, -1).transpose(0, 1)   # [n, T, h+g]
        of_source = torch.bmm(torch.stack([s.view(T, D) for s in sources]), self.reads.transpose(1, 2))
        u = of_target[..., :h] - of_source[..., :h]
        inner = F.silu((of_target[..., h:] + of_source[..., h:]) * 0.5 + self.gate_in_bias)
        g = torch.sigmoid(torch.baddbmm(self.gate_out_bias, inner, self.gate_out))
        v = u * g * (self.scale * self.mix.view(n, 1, 1))
        out = v.transpose(0, 1).reshape(T, n * h) @ self.output.view(n * h, D)
        return target + out.view(B, S, D)


class Layer(nn.Module):
    def __init__(self, a, l):
        super().__init__()
        self.norm1, self.attention = RMSNorm(a.width, a.norm_eps), Attention(a.width, a.heads)
        self.norm2, self.mlp = RMSNorm(a.width, a.norm_eps), MLP(a.width, a.ffn)
        distances = [d for d in a.distances if d <= l]
        kind = DirectConnections if a.direct else StackedConnections
        self.delta = kind(a.width, distances, a.hidden, a.gate_hidden, 0.1) if distances else None

    def forward(self, x, cos, sin, outputs):
        x = x + self.attention(self.norm1(x), cos, sin)
        x = x + self.mlp(self.norm2(x))
        if self.delta is not None:
            x = self.delta(x, [outputs[-d] for d in self.delta.distances])
        return x


class Model(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embed = nn.Embedding(a.vocab, a.width)
        self.layers = nn.ModuleList(Layer(a, l) for l in range(a.layers))
        self.norm = RMSNorm(a.width, a.norm_eps)
        self.head = nn.Linear(a.width, a.vocab, bias=False)
        half = a.width // a.heads // 2
        angle = torch.outer(torch.arange(a.context, dtype=torch.float64), 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half))
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)
        for p in self.parameters():
            if p.dim() >= 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x, outputs = self.embed(tokens), []
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, outputs)
            outputs.append(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def make_step(model, a, lr=1e-3, weight_decay=0.1, clip=1.0):
    """The optimiser and a function (tokens, targets) -> loss that does one training step."""
    decayed = [p for n, p in model.named_parameters() if p.dim() >= 2 and not n.endswith("bias")]
    others = [p for n, p in model.named_parameters() if p.dim() < 2 or n.endswith("bias")]
    groups = [dict(params=decayed, weight_decay=weight_decay), dict(params=others, weight_decay=0.0)]
    optimiser = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), eps=1e-8, fused=True)
    forward = torch.compile(model, mode=a.compile_mode, options=options(a)) if a.compile else model
    parameters = decayed + others

    def step(tokens, targets):
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(a.device, torch.bfloat16, enabled=a.precision == "bf16"):
            loss = forward(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, clip, foreach=True)
        optimiser.step()
        return loss
    return optimiser, step


def options(a):
    """Inductor's settings from --option NAME=VALUE (JSON values); None where --compile-mode is given instead."""
    chosen = {}
    for text in a.option:
        name, value = text.split("=", 1)
        chosen[name] = json.loads(value)
    return chosen or None


def measure(a):
    torch.manual_seed(1)
    with torch.device(a.device):
        model = Model(a)
    _, step = make_step(model, a)
    tokens = torch.randint(0, a.vocab, (a.batch, a.context + 1)).to(a.device)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    begin = time.perf_counter()
    for _ in range(a.warmup):
        step(x, y).item()
    warm_seconds = time.perf_counter() - begin
    seconds = []
    for _ in range(a.steps):
        begin = time.perf_counter()
        step(x, y).item()
        seconds.append(time.perf_counter() - begin)
    middle = statistics.median(seconds)
    print(json.dumps(dict(
        what="step", program="pytorch " + torch.__version__, tokens_per_second=a.batch * a.context / middle,
        step_seconds=middle, best_step_seconds=min(seconds), steps=a.steps, warmup_seconds=round(warm_seconds, 2),
        compile=a.compile, compile_mode=a.compile_mode, options=a.option, threads=torch.get_num_threads(), direct=a.direct,
        device=torch.cuda.get_device_name() if a.device == "cuda" else "cpu", precision=a.precision, mkldnn=a.mkldnn, flush_denormal=a.flush_denormal, layers=a.layers, width=a.width, heads=a.heads, ffn=a.ffn,
        context=a.context, batch=a.batch, vocab=a.vocab, distances=a.distances, hidden=a.hidden, gate_hidden=a.gate_hidden,
        parameters=sum(p.numel() for p in model.parameters()))), flush=True)


# -------------------------------------------------------------------------------------------------- check
def copy_weights(model, w, a):
    """Puts the specification's weights (by its names) into `model`."""
    def get(*names):
        return torch.cat([w[n].detach() for n in names]).float()

    with torch.no_grad():
        model.embed.weight.copy_(get("embed_tokens.weight"))
        model.norm.weight.copy_(get("norm.weight"))
        model.head.weight.copy_(get("lm_head.weight"))
        for l, layer in enumerate(model.layers):
            p = f"layers.{l}."
            layer.norm1.weight.copy_(get(p + "input_layernorm.weight"))
            layer.norm2.weight.copy_(get(p + "post_attention_layernorm.weight"))
            layer.attention.qkv.weight.copy_(get(*[f"{p}self_attn.{k}_proj.weight" for k in "qkv"]))
            layer.attention.out.weight.copy_(get(p + "self_attn.o_proj.weight"))
            layer.mlp.gate_up.weight.copy_(get(p + "mlp.gate_proj.weight", p + "mlp.up_proj.weight"))
            layer.mlp.down.weight.copy_(get(p + "mlp.down_proj.weight"))
            c = layer.delta
            for i, d in enumerate(c.distances if c is not None else []):
                q = f"{p}delta.{d}."
                c.mix[i] = w[q + "mix"].item()
                if a.direct:
                    c.project[i].weight.copy_(get(q + "delta_proj.weight"))
                    c.gate_in[i].weight.copy_(get(q + "gate_in.weight"))
                    c.gate_in[i].bias.copy_(get(q + "gate_in.bias"))
                    c.gate_out[i].weight.copy_(get(q + "gate_out.weight"))
                    c.gate_out[i].bias.copy_(get(q + "gate_out.bias"))
                    c.output[i].weight.copy_(get(q + "output_proj.weight"))
                else:
                    c.reads[i] = get(q + "delta_proj.weight", q + "gate_in.weight")
                    c.gate_in_bias[i] = get(q + "gate_in.bias")
                    c.gate_out[i] = get(q + "gate_out.weight").t()
                    c.gate_out_bias[i] = get(q + "gate_out.bias")
                    c.output[i] = get(q + "output_proj.weight").t()


def check(a):
    """Trains a tiny model here and in the executable specification from the same weights; fails unless losses agree
    within 1e-5 relative, which is what float32 rounding stays well below over so few steps."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden"))
    sys.dont_write_bytecode = True   # leaves nothing in the tests' folder
    import gdn_reference as reference

    a.layers, a.width, a.heads, a.ffn, a.context, a.batch, a.vocab = 6, 32, 4, 48, 16, 4, 61
    a.hidden, a.gate_hidden, steps = 8, 6, 10
    delta = reference.DeltaConfig(distances=a.distances, hidden=a.hidden, gate_hidden=a.gate_hidden)
    m = reference.ModelConfig(vocab_size=a.vocab, hidden_size=a.width, num_layers=a.layers, num_heads=a.heads,
                              intermediate_size=a.ffn, delta=delta)
    t = reference.TrainConfig(steps=steps, batch_size=a.batch, sequence_length=a.context, lr=3e-3, grad_clip=0.5)
    w = reference.init_parameters(m, 1)
    generator = torch.Generator().manual_seed(2)
    for v in w.values():   # away from the zeros that make a connection start as no change
        with torch.no_grad():
            v.add_((torch.randn(v.shape, generator=generator) * 0.1).float().double())
    length = t.sequence_length + 1   # samples as the specification has them: which tokens count, open a document, are padding
    nothing = torch.zeros(length, dtype=torch.bool)
    samples = [(torch.randint(0, a.vocab, (length,), generator=generator), ~nothing, nothing, nothing) for _ in range(t.batch_size * steps)]
    model = Model(a)
    copy_weights(model, w, a)
    optimiser, step = make_step(model, a, weight_decay=t.weight_decay, clip=t.grad_clip)
    worst = 0.0
    for (k, x, y, *_), record in zip(reference.batches(samples, t), reference.train(w, samples, m, t)):
        for group in optimiser.param_groups:
            group["lr"] = record["lr"]
        loss = step(x.contiguous(), y.contiguous()).item()
        worst = max(worst, abs(loss - record["loss"]) / record["loss"])
    print(json.dumps(dict(what="check", worst_relative_difference=worst, steps=steps, direct=a.direct, compile=a.compile)))
    if not worst < 1e-5:
        sys.exit("peer.py: the losses differ from the specification's")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--ffn", type=int, default=352)
    p.add_argument("--context", type=int, default=64)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--vocab", type=int, default=257)
    p.add_argument("--distances", default="1,2,3,4", help="increasing, joined by commas; empty: a plain transformer")
    p.add_argument("--hidden", type=int, default=32, help="width of a connection's bottleneck")
    p.add_argument("--gate-hidden", type=int, default=16)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--threads", type=int, default=0, help="0: PyTorch's choice")
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--compile-mode", default=None, help="torch.compile's mode, for example max-autotune")
    p.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an inductor option, repeatable")
    p.add_argument("--direct", action="store_true", help="a layer's connections one by one instead of stacked")
    p.add_argument("--mkldnn", choices=["on", "off"], default="on")
    p.add_argument("--flush-denormal", action="store_true")
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16: the forward pass under autocast")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    a.norm_eps = 1e-5
    a.distances = [int(d) for d in a.distances.split(",") if d]
    if a.threads:
        torch.set_num_threads(a.threads)
    if a.flush_denormal:
        torch.set_flush_denormal(True)
    if a.check and a.device != "cpu":
        p.error("--check compares on the cpu")
    with torch.backends.mkldnn.flags(enabled=a.mkldnn == "on"):
        check(a) if a.check else measure(a)


if __name__ == "__main__":
    main()
