"""Models that gdn has trained, in Python (generation.sh): gdn's loss, greedy text with a cache and without, padding, what is saved and
loaded again, recomputation. generation.py RUN …; `packages`: ends, skipped where some are missing."""

import json
import os
import sys

from support import RULES, GdnConfig, GdnForCausalLM, check, close, refused, torch, transformers

PROMPT = [116, 104, 101, 32]


def said(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@torch.no_grad()
def loss(run, model):
    """gdn's eval of the same tokens: mean of the same float32 losses, added in another order."""
    length = 48
    with open("held-out.txt", "rb") as file:
        tokens = torch.tensor(list(file.read()))
    rows = torch.stack([tokens[i * length:(i + 1) * length + 1] for i in range((len(tokens) - 1) // length)])
    report = said(f"{run}.eval")
    check(report["sequences"] == len(rows), run, "has other sequences")
    close(model(rows, labels=rows).loss, torch.tensor(report["loss"], dtype=torch.float64), 1e-5, run, "loss")


def text(run, model):
    """Greedy tokens, with a cache and without, are gdn's."""
    want = said(f"{run}.generate")["ids"]
    check(len(want) == 200 and len(set(want)) > 4, run, "writes", want)
    greedy = dict(max_new_tokens=200, do_sample=False, eos_token_id=None, pad_token_id=0)
    for cached in (True, False):
        got = model.generate(torch.tensor([PROMPT]), use_cache=cached, **greedy)[0, len(PROMPT):].tolist()
        first = next((i for i in range(200) if got[i] != want[i]), None)
        check(first is None, run, "with a cache" if cached else "without", "a cache writes otherwise from token", first)


@torch.no_grad()
def pieces(run, model):
    """Logits of a text in pieces, with a cache, are those of the whole, up to the rounding of other shapes' products."""
    tokens = torch.tensor([PROMPT * 6])
    whole = model(tokens).logits
    cache, parts = None, []
    for piece in tokens.split([9, 1, 1, 13], dim=1):
        out = model(piece, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        parts.append(out.logits)
    close(torch.cat(parts, 1), whole, 1e-5, run, "logits in pieces")
    close(model(tokens, logits_to_keep=2).logits, whole[:, -2:], 1e-5, run, "last logits")
    for name in ("eager", "sdpa"):
        model.set_attn_implementation(name)
        out = model(tokens, output_hidden_states=True, output_attentions=name == "eager")
        close(out.logits, whole, 1e-5, run, "logits of", name)
        check(len(out.hidden_states) == 5 and (name != "eager" or len(out.attentions) == 4), run, "has other states")


@torch.no_grad()
def padding(run, model):
    """Short sequences padded on the left, whatever by, give what they give alone; so does text from them."""
    long, short = torch.tensor([PROMPT * 3]), torch.tensor([PROMPT])
    padded = torch.cat([torch.full((1, 8), 77), short], dim=1)
    batch, mask = torch.cat([long, padded]), torch.tensor([[1] * 12, [0] * 8 + [1] * 4])
    places = torch.tensor([list(range(12)), [0] * 8 + list(range(4))])
    for given in ({}, {"position_ids": places}):
        logits = model(batch, attention_mask=mask, **given).logits
        close(logits[1:, 8:], model(short).logits, 1e-5, run, "padded logits")
        close(logits[:1], model(long).logits, 1e-5, run, "logits beside padded ones")
        first = model(batch[:, :10], attention_mask=mask[:, :10], **{key: value[:, :10] for key, value in given.items()})
        rest = model(batch[:, 10:], attention_mask=mask, past_key_values=first.past_key_values,
                     **{key: value[:, 10:] for key, value in given.items()})
        close(rest.logits, logits[:, 10:], 1e-5, run, "padded logits in pieces")
    greedy = dict(max_new_tokens=40, do_sample=False, eos_token_id=None, pad_token_id=0)
    alone = model.generate(short, **greedy)[0, 4:]
    check(torch.equal(model.generate(batch, attention_mask=mask, **greedy)[1, 12:], alone), run, "writes otherwise where it is padded")


def saved(run, model):
    """save_pretrained leaves all that transformers needs, and the same model comes back from it."""
    folder = f"{run}-saved"
    model.save_pretrained(folder)
    files = set(os.listdir(folder))
    check({"config.json", "model.safetensors", "configuration_gdn.py", "modeling_gdn.py"} <= files, run, "is saved as", files)
    again = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
    check(type(again).__module__.startswith("transformers_modules."), "another class was loaded:", type(again))
    check(again.config.delta == model.config.delta and again.config.rules == model.config.rules, run, "comes back with", again.config)
    with torch.no_grad():
        check(torch.equal(again(torch.tensor([PROMPT])).logits, model(torch.tensor([PROMPT])).logits), run, "comes back otherwise")
    narrow = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, dtype=torch.bfloat16)
    wide = model(torch.tensor([PROMPT])).logits
    close(narrow(torch.tensor([PROMPT])).logits, wide, 0.1 * wide.abs().max().item(), run, "logits in bfloat16")


def recomputed(run, model):
    """Gradient checkpointing changes no gradient, but by sums in another order; of what is not introduced there is none."""
    tokens, gradients = torch.tensor([PROMPT * 4]), []
    model.train()
    for kind in (None, False, True):
        model.zero_grad()
        if kind is not None:
            model.gradient_checkpointing_enable({"use_reentrant": kind})
        model(tokens, labels=tokens).loss.backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    model.eval()
    active, late = model.config.active_distances, []
    if active is not None:
        late = [f".delta.{d}." for d in model.config.delta["distances"][active:]]
        check(late, run, "has no distance to come")
    for name, first in gradients[0].items():
        check((first is None) == any(part in name for part in late), run, name, "has a gradient, or none")
        for other in gradients[1:]:
            if first is not None:
                close(other[name], first, 1e-6 + 1e-5 * first.norm().item(), run, "recomputed gradient of", name)


def start():
    """A new model computes what its trunk does alone, as in gdn (model.md, 7)."""
    tokens = torch.tensor([list(range(60))])
    several = [{"kind": "hyper", "form": "dynamic", "mixing": "doubly_stochastic"}] # stands alone
    some = [{"kind": kind} for kind in RULES if kind != "hyper"]
    cases = [({"kind": kind}, some) for kind in ("bottleneck", "full", "adaptive")]
    for delta, entries in cases + [({"distances": []}, several)]:
        model = GdnForCausalLM(GdnConfig(delta=delta, rules=entries)).eval()
        plain = GdnForCausalLM(GdnConfig(delta={"distances": []})).eval()
        missing, extra = plain.load_state_dict(model.state_dict(), strict=False)
        check(not missing and extra, "other tensors", missing)
        check(torch.equal(model(tokens).logits, plain(tokens).logits), "a new model with", delta, "is another function")


def paths(run, model):
    """What stands for a checkpoint."""
    step = f"{run}/checkpoints/step_00000200"
    for path in (step, f"{step}/checkpoint.h5", f"{run}/checkpoints/latest"):
        check(torch.equal(GdnForCausalLM.from_gdn(path).lm_head.weight, model.lm_head.weight), path, "is another model")
    refused("is neither a gdn checkpoint", GdnForCausalLM.from_gdn, f"{run}/checkpoints/none")


def main(runs):
    start()
    for run in runs:
        model = GdnForCausalLM.from_gdn(run)
        check(model.generation_config.eos_token_id == 256, run, "ends otherwise")
        for test in (loss, text, pieces, padding, saved, recomputed, paths):
            test(run, model)
        print(f"{run}: agrees")


if __name__ == "__main__" and sys.argv[1:] != ["packages"]:
    main(sys.argv[1:])
