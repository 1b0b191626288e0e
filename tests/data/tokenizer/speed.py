#!/usr/bin/env python3
"""Speed of `gdn data write --tokenizer` beside the reference implementation, the package `tokenizers`.

    speed.py prepare GDN FOLDER FILE...   of texts: FOLDER/documents.jsonl, and a tokenizer of 32000 tokens of each family
    speed.py run GDN FOLDER [ROUNDS]      both on them, in turn; a table of medians

With one thread each, then with all. Here the time is that of the whole command: starting, reading the tokenizer and
the JSON, and writing the token file. The reference's is that of encode_batch alone, and of encode_batch_fast, which
leaves out where in the text tokens came from; its texts lie in memory before, and its ids are not written.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import time

VOCAB = 32000
BATCH = 1000  # documents that the reference gets at a time: it is slower with all at once
TEXT = 6 << 20  # bytes of text that are measured, of all files' alike
DOCUMENT = 4096  # bytes or more: texts are cut at blank lines


def documents(paths):
    for path in paths:
        held, size = [], 0
        for part in open(path, encoding="utf-8", errors="replace", newline="").read().replace("\0", "").split("\n\n"):
            held.append(part)
            size += len(part)
            if size >= DOCUMENT:
                yield "\n\n".join(held)
                held, size = [], 0
        if held:
            yield "\n\n".join(held)


def prepare(gdn, folder, *paths):
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from reference import LLAMA3, QWEN
    os.makedirs(folder, exist_ok=True)
    texts = [t for t in documents(paths) if t]
    with open(os.path.join(folder, "documents.jsonl"), "w") as file:
        for text in texts:
            file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    size = sum(len(t.encode()) for t in texts)
    with open(os.path.join(folder, "some.jsonl"), "w") as file:
        for text in texts[::max(1, size // TEXT)]:
            file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    save = lambda name, value: json.dump(value, open(os.path.join(folder, name + ".json"), "w"), ensure_ascii=False)

    path = os.path.join(folder, "llama3.json")
    subprocess.run([gdn, "data", "tokenizer", "--vocab", str(VOCAB), "--output", path, os.path.join(folder, "documents.jsonl")], check=True)
    value = json.load(open(path))
    value["model"]["ignore_merges"] = True
    save("llama3", value)
    value["model"]["ignore_merges"] = False
    value["normalizer"] = {"type": "NFC"}
    value["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = QWEN
    save("qwen", value)
    value["normalizer"] = None
    value["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    save("gpt2", value)

    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    special = ["<unk>", "<s>", "</s>"]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=special + ["<0x%02X>" % b for b in range(256)],
                                                             limit_alphabet=4000, show_progress=False))
    value = json.loads(tokenizer.to_str())
    value["added_tokens"] = [t for t in value["added_tokens"] if t["content"] in special]
    space = json.loads(normalizers.Replace(" ", "▁").__getstate__())
    first = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    save("mistral", {**value, "pre_tokenizer": json.loads(first.__getstate__())})
    save("llama2", {**value, "pre_tokenizer": None,
                    "normalizer": {"type": "Sequence", "normalizers": [json.loads(normalizers.Prepend("▁").__getstate__()), space]}})
    save("gemma", {**value, "normalizer": space,
                   "pre_tokenizer": json.loads(pre_tokenizers.Split(" ", "merged_with_previous").__getstate__())})
    save("metaspace", value)


def reference(method, folder, tok):
    """In a process of its own: prints the seconds, those of all its processors, and the tokens."""
    from tokenizers import Tokenizer
    texts = [json.loads(line)["text"] for line in open(os.path.join(folder, "some.jsonl"))]
    tokenizer = Tokenizer.from_file(tok)
    tokens, start, used = 0, time.time(), time.process_time()
    for i in range(0, len(texts), BATCH):
        tokens += sum(len(e.ids) for e in getattr(tokenizer, method)(texts[i:i + BATCH], add_special_tokens=False))
    print(time.time() - start, time.process_time() - used, tokens)


def measure(command, threads):
    """What it printed, its seconds, and those of all its processors."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads),
                   "TOKENIZERS_PARALLELISM": "false" if threads == 1 else "true"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    out = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, time.time() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(gdn, folder, rounds=5):
    data = os.path.join(folder, "some.jsonl")
    megabytes = sum(len(json.loads(line)["text"].encode()) for line in open(data)) / 1e6
    print("%.1f MB of text; MB/s, and MB a second of a processor; medians of %d rounds\n" % (megabytes, int(rounds)))
    print("| tokenizer | threads | gdn data write | encode_batch | encode_batch_fast | to the faster | a processor: gdn | encode_batch | fast | to the faster |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".json")):
        tok = os.path.join(folder, name)
        for threads in sorted({1, len(os.sched_getaffinity(0))}):
            taken = {"gdn": [], "encode_batch": [], "encode_batch_fast": []}
            for _ in range(int(rounds)):
                tokens = set()
                for who in taken:
                    if who == "gdn":
                        output = os.path.join(folder, "output.bin")
                        out, *seconds = measure([gdn, "data", "write", "--tokenizer", tok, "--format", "llmc", "--output", output, data], threads)
                        tokens.add(int(out[out.index("tokens") + 1]))
                        os.unlink(output)
                    else:
                        out, *_ = measure([sys.executable, __file__, "reference", who, folder, tok], threads)
                        seconds = [float(out[0]), float(out[1])]
                        tokens.add(int(out[2]))
                    taken[who].append(seconds)
                if len(tokens) > 1:
                    raise SystemExit("%s: numbers of tokens differ: %s" % (name, tokens))
            row = []
            for kind in (0, 1):
                speed = [megabytes / statistics.median(s[kind] for s in taken[who]) for who in taken]
                row += speed + [speed[0] / max(speed[1:])]
            print("| %s | %d | %s |" % (name[:-5], threads, " | ".join("%.1f" % x for x in row)), flush=True)


if __name__ == "__main__":
    {"prepare": prepare, "run": run, "reference": reference}[sys.argv[1]](*sys.argv[2:])
