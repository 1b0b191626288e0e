"""What huggingface_python.sh asks of transformers: huggingface_peer.py make DIR | loss DIR TEXT | loss-gdn RUN TEXT | ends RUN |
greedy DIR | padding DIR | tune DIR OUT TEXT"""
import contextlib
import importlib.util
import os
import sys

import torch
import transformers

LENGTH = 64  # of sequences
torch.set_num_threads(1)


def load(path):
    return transformers.AutoModelForCausalLM.from_pretrained(path, trust_remote_code=True, dtype=torch.float32).eval()


def rows(path):
    """Whole sequences with the token behind each, as gdn reads them."""
    tokens = torch.tensor(list(open(path, "rb").read()))
    count = (len(tokens) - 1) // LENGTH
    return torch.stack([tokens[i * LENGTH : (i + 1) * LENGTH + 1] for i in range(count)])


def loss(model, path):
    tokens = rows(path)
    with torch.no_grad():
        logits = model(tokens[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.double().flatten(0, 1), tokens[:, 1:].flatten()).item()


def make(path):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(vocab_size=257, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
                                      num_key_value_heads=2, intermediate_size=48, max_position_embeddings=LENGTH,
                                      bos_token_id=256, eos_token_id=256, initializer_range=0.1)
    transformers.LlamaForCausalLM(config).save_pretrained(path)


def load_gdn(path):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../model/huggingface"))
    from modeling_gdn import GdnForCausalLM

    return GdnForCausalLM.from_gdn(path)


def ends(path):
    config = load_gdn(path).generation_config
    print(config.bos_token_id, config.eos_token_id)


def greedy(path):
    prompt = torch.tensor([[84, 104, 101, 32]])
    out = load(path).generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=200, min_new_tokens=200, do_sample=False,
                              eos_token_id=None, pad_token_id=0)
    print(*out[0, 4:].tolist())


def padding(path):
    """Prompts of two lengths in a batch go on as each alone."""
    model, prompts = load(path), [[84, 104, 101, 32], [65, 110, 100, 32, 116, 104, 101, 32]]
    ask = dict(max_new_tokens=20, do_sample=False, eos_token_id=None, pad_token_id=0)
    alone = [model.generate(torch.tensor([p]), **ask)[0, len(p):].tolist() for p in prompts]
    batch = torch.tensor([[0] * (8 - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (8 - len(p)) + [1] * len(p) for p in prompts])
    together = model.generate(batch, attention_mask=mask, **ask)[:, 8:].tolist()
    assert together == alone, f"{together} and {alone}"


def train(model, data, out):
    """By the Trainer, where what it needs is there."""
    if importlib.util.find_spec("accelerate"):
        arguments = transformers.TrainingArguments(output_dir=out + "-trainer", max_steps=3, per_device_train_batch_size=4,
                                                   learning_rate=1e-3, report_to=[], use_cpu=True, save_strategy="no")
        with contextlib.redirect_stdout(sys.stderr):  # the Trainer sums up there
            transformers.Trainer(model=model, args=arguments, train_dataset=data).train()
        return
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(3):
        rows = torch.stack([row["input_ids"] for row in data[4 * step : 4 * step + 4]])
        optimizer.zero_grad()
        model(rows, labels=rows).loss.backward()
        optimizer.step()


def tune(path, out, text):
    model, tokens = load(path), rows(text)
    before = loss(model, text)
    train(model.train(), [{"input_ids": row[:-1], "labels": row[:-1]} for row in tokens], out)
    model.eval().save_pretrained(out)
    after = loss(load(out), text)
    assert after < before, f"the loss was {before} and is {after}"
    print(after)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what in ("loss", "loss-gdn"):
        print(loss((load if what == "loss" else load_gdn)(rest[0]), rest[1]))
    else:
        {"make": make, "ends": ends, "greedy": greedy, "padding": padding, "tune": tune}[what](*rest)
