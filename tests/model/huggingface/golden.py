"""GdnForCausalLM beside the specification on every golden file (tests/golden): logits, loss and gradients; a permuted tensor is seen;
tables of kinds and defaults are the specification's. golden.py [NAME …]   (default: all)"""

import glob
import json
import os
import tempfile
from dataclasses import asdict

from support import (
    DELTA, LOGITS, RULES, SOURCE, GdnConfig, GdnForCausalLM, Golden, check, close, h5py, modeling_gdn, reference, refused, torch)


def tables():
    """What can be configured is what the specification has, with its defaults."""
    check(DELTA == asdict(reference.DeltaConfig()), "defaults of delta are", DELTA)
    kinds = {kind: rule.settings for kind, rule in reference.RULES.items()}
    check(RULES == kinds, "rules are", RULES, "the specification has", kinds)
    check(set(modeling_gdn.KINDS) == set(RULES), "rules that are computed are", list(modeling_gdn.KINDS))
    model = asdict(reference.ModelConfig())
    del model["residual"] # of section train in a file
    check(GdnConfig.from_gdn({"model": model}).to_dict() == GdnConfig(num_key_value_heads=4).to_dict(), "defaults of the model")


def errors():
    refused("'cosine', which this version does not know; it knows lane, mix", GdnConfig, rules=[{"kind": "lane"}, {"kind": "cosine"}])
    refused("lane has no setting gain", GdnConfig, rules=[{"kind": "lane", "gain": 1}])
    refused("delta has no setting widths", GdnConfig, delta={"widths": 1})
    refused("delta.kind is 'wide'; it may be bottleneck", GdnConfig, delta={"kind": "wide"})
    refused("mix.place is 'around'", GdnConfig, rules=[{"kind": "mix", "place": "around"}])
    refused("dense.channels is 'output'", GdnConfig, rules=[{"kind": "dense", "channels": ["value", "output"]}])
    refused("neither channels nor a period", GdnConfig, rules=[{"kind": "dense", "place": "head", "period": 2}])
    refused("hyper.streams (3)", GdnConfig, delta={"distances": []}, rules=[{"kind": "hyper", "streams": 3}])
    refused("hyper has several residual streams", GdnConfig, rules=[{"kind": "hyper"}])
    refused("delta.distances", GdnConfig, delta={"distances": [2, 1]})
    refused("delta.edges[1] ([2, 2])", GdnConfig, delta={"edges": [[1, 0], [2, 2]]})
    refused("delta.edges[0] ([6, 0])", GdnConfig, delta={"edges": [[6, 0]]})
    refused("delta.edges stand alone", GdnConfig, delta={"edges": [[2, 0]], "distances": [1]})
    refused("delta.gate_hidden (1)", GdnConfig, delta={"kind": "adaptive", "gate_hidden": 1})
    refused("attention_bias is 'some'", GdnConfig, attention_bias="some")
    refused("model.moe is not known", GdnConfig.from_gdn, {"model": {"moe": 1}})
    refused("model.exit has no setting depth", GdnConfig.from_gdn, {"model": {"exit": {"depth": 1}}})
    refused("model.rope_scaling has no setting beta", GdnConfig.from_gdn, {"model": {"rope_scaling": {"beta": 1.0}}})
    refused("model.rope_scaling.kind is 'yarn'", GdnConfig.from_gdn, {"model": {"rope_scaling": {"kind": "yarn"}}})
    refused("nowhere is neither", GdnForCausalLM.from_gdn, "nowhere")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "some.h5")
        with h5py.File(path, "w") as file, h5py.File(f"{SOURCE}/tests/golden/rule-value.h5") as golden:
            file.attrs["config"] = golden.attrs["config"]
            golden.copy("initial", file)
            del file["initial/layers/1/value/1/gate/weight"]
        refused("lacks layers.1.value.1.gate.weight", GdnForCausalLM.from_gdn, path)
        with h5py.File(path, "a") as file:
            file["initial/layers/1/value/1/gate/weight"] = torch.zeros(2, 11).numpy()
        refused("layers.1.value.1.gate.weight is (2, 11), (2, 12) by its configuration", GdnForCausalLM.from_gdn, path)
        with h5py.File(path, "a") as file:
            file["initial/layers/1/extra"] = [1.0]
        refused("has, unknown to its configuration, layers.1.extra", GdnForCausalLM.from_gdn, path)


def carried():
    """What a checkpoint has beside its configuration: connections that are left, and by what a text begins and ends."""
    pruned = GdnConfig.from_gdn({"model": {"delta": {"embedding_source": True}}}, carried={"pruning": "measured 3\n0 -1 1 0.5\n2 1 0 0.1\n2 0 1 2e-05\n"})
    check(pruned.delta["edges"] == [[0, -1], [2, 0]] and not pruned.delta["distances"], "left are", pruned.delta)
    vocabulary = json.dumps({"model": {"vocab": {"a": 0, "<s>": 1}}, "added_tokens": [{"content": "<s>", "id": 7}, {"content": "</s>", "id": 8}]})

    def ends(data, **names):
        files = {"tokenizer.json": vocabulary, "tokenizer_config.json": json.dumps(names)} if names else {}
        config = GdnConfig.from_gdn({"data": data}, carried=files)
        return config.bos_token_id, config.eos_token_id

    end = {"content": "</s>", "lstrip": False}
    for data, names, want in (
            ({"format": "text"}, {}, (256, 256)), ({"format": "jsonl", "tokenizer": "bytes"}, {}, (256, 256)),
            ({"format": "hdf5", "tokenizer": ""}, {}, (None, None)), ({"format": "text", "tokenizer": "tokenizer.json"}, {}, (None, None)),
            ({"format": "text"}, {"bos_token": "<s>", "eos_token": end}, (7, 8)), ({"format": "text"}, {"bos_token": None, "eos_token": end}, (8, 8)),
            ({"format": "text"}, {"bos_token": "a"}, (0, None)), ({"format": "text"}, {"pad_token": "a"}, (None, None))):
        check(ends(data, **names) == want, "with", data, "and", names, "texts begin and end with", ends(data, **names))
    refused("eos_token is '<end>', which is no token", ends, {}, eos_token="<end>")


def starts():
    """A new model's weights are distributed as the specification's (model.md, 7)."""
    torch.manual_seed(1)
    several = [{"kind": "hyper", "form": "dynamic"}] # stands alone
    some = [{"kind": kind} for kind in RULES if kind != "hyper"] + [{"kind": "dense", "form": "dynamic"}]
    cases = [({"kind": kind, "normalize": True, "aggregate": "multihead"}, some) for kind in ("bottleneck", "full", "adaptive")]
    for delta, entries in cases + [({"distances": []}, several)]:
        model = GdnForCausalLM(GdnConfig(delta=delta, rules=entries))
        want = reference.init_parameters(reference.ModelConfig(delta=reference.DeltaConfig(**delta), rules=entries), seed=1)
        for tensor, parameter in model.named_parameters():
            other = want.pop(modeling_gdn.gdn_name(tensor))
            if (other == other.flatten()[0]).all():
                check(torch.equal(parameter, other.float()), tensor, "starts as", parameter)
            else: # the deviation of n numbers is off by 1/√(2n) of it, and their mean by 1/√n: both models' are drawn
                within = 8 / (2 * other.numel()) ** 0.5
                check(abs(parameter.std() / other.std() - 1) < within and abs(parameter.mean()) < within * other.std(), tensor, "starts as", parameter, "the specification as", other)
        check(not want, "tensors are missing:", list(want))


def gradients(golden, model, name):
    """Of the first step's loss. A float32 PyTorch is within 5e-5 of each gradient's norm (model.md, 10)."""
    out = model(golden.chunk, labels=golden.chunk)
    close(out.loss, torch.tensor(golden.cross_entropy), 1e-6, name, "loss")
    summed = model(golden.chunk, labels=golden.chunk, num_items_in_batch=torch.tensor(7)).loss
    close(summed * 7, out.loss * golden.chunk[:, 1:].numel(), 1e-4, name, "loss of num_items_in_batch")
    out.loss.backward()
    for tensor, parameter in model.named_parameters():
        want = golden.gradient.get(modeling_gdn.gdn_name(tensor))
        check((want is None) == (parameter.grad is None), name, tensor, "has a gradient, or none, where the specification has not")
        if want is not None:
            close(parameter.grad, want, 5e-5 * want.norm().item(), name, "gradient of", tensor) # one that is 0 is 0: a softmax of one


@torch.no_grad()
def permutations(golden, model, name):
    """Lines or columns of any tensor in another order change the logits, by more than what passes as rounding: of weights that are larger
    than a golden file's, where those of a gate's MLP do little."""
    seen = 0
    for tensor, parameter in model.named_parameters():
        if any(layers in tensor for layers in (".delta.", ".value.", ".dense.")):
            parameter.mul_(4)
            golden.weights[modeling_gdn.gdn_name(tensor)] *= 4
    want = golden.logits()
    close(model(golden.chunk[:, :-1]).logits, want, LOGITS, name, "logits of larger weights")
    for tensor, parameter in model.named_parameters():
        gradient = golden.gradient.get(modeling_gdn.gdn_name(tensor))
        if gradient is None or not gradient.any():
            continue # of a connection that is not yet introduced, or has nothing beside it to choose from
        for axis in range(parameter.dim()):
            # the columns of both are compared in pairs, whatever their order
            if parameter.shape[axis] == 1 or (tensor.endswith("delta.select.weight") and axis == 0):
                continue
            right = parameter.clone()
            parameter.copy_(right.roll(1, axis))
            worst = (model(golden.chunk[:, :-1]).logits - want).abs().max()
            check(worst > 5 * LOGITS, name, tensor, f"with axis {axis} in another order: logits differ by {worst:.3g} alone")
            parameter.copy_(right)
            seen += 1
    check(seen > 40, name, "has", seen, "permutations alone")


def main(names):
    permuted = ("bottleneck-attention-normalize", "adaptive-multihead-normalize", "adaptive-learned", "full-learned", "rule-dense", "rule-value",
                "rule-embedding", "rule-residual", "rules-depth-attention", "rules-gated", "rules-stream")
    tables()
    errors()
    carried()
    starts()
    with_gradients = 0
    for name in names:
        path = f"{SOURCE}/tests/golden/{name}.h5"
        golden, model = Golden(path), GdnForCausalLM.from_gdn(path)
        want = golden.logits()
        close(model(golden.chunk[:, :-1]).logits, want, LOGITS, name, "logits")
        # float64, but for transformers' rotary angles, which are float32's
        close(GdnForCausalLM.from_gdn(path, dtype=torch.float64)(golden.chunk[:, :-1]).logits, want, 1e-6, name, "logits in float64")
        if golden.plain:
            gradients(golden, model, name)
            with_gradients += 1
        if name in permuted:
            permutations(golden, model, name)
    print(f"{len(names)} golden files agree, {with_gradients} of them with their gradients")
    check(len(names) < 40 or with_gradients >= 20, "gradients of few")


if __name__ == "__main__":
    import sys
    names = sorted(os.path.basename(path)[:-3] for path in glob.glob(f"{SOURCE}/tests/golden/*.h5"))
    main(sys.argv[1:] or [name for name in names if not name.startswith("residual-")])   # transformers' stream has its model's dtype
