#!/usr/bin/env python3
"""Tokenizers and their ids as the reference implementation, the package `tokenizers`, has them.

    reference.py golden FOLDER           writes the tokenizers and golden.json, which test_tokenizer.c reads
    reference.py compare PROGRAM N [SEED] encodes N made-up texts with each tokenizer here and with PROGRAM (encode_texts)
    reference.py characters PROGRAM      the same for every character that is the same in the Unicode versions of everybody here
    reference.py long PROGRAM FILE [MB [TOKENIZER…]]
                                         the same for texts of 100 MB: FILE again and again, and long runs of one thing (a tenth);
                                         of 100 MB the reference takes more than 13 GB
    reference.py train GDN FILE N        trains N tokens on a text here and with `gdn data tokenizer`

speed.py measures both. The tokenizers are trained here on a few texts, in the forms that well-known families have, and in odd ones.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SCRIPTS = """All human beings are born free and equal in dignity and rights; they've reason, don't they? It's 1948's text.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.
Все люди рождаются свободными и равными в своём достоинстве и правах.
כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.
يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।
সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।
ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ ਨਾਲ ਪੈਦਾ ਹੋਇਆ ਹੈ।
પ્રતિષ્ઠા અને અધિકારોની દૃષ્ટિએ સર્વ માનવો જન્મથી સ્વતંત્ર હોય છે.
மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.
ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులు.
ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ.
മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും സ്വാതന്ത്ര്യത്തോടുംകൂടി ജനിച്ചിട്ടുള്ളവരാണ്‌.
සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත.
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ
ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ ສິດທິ.
လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် မွေးဖွားလာသူများ ဖြစ်သည်။
ყველა ადამიანი იბადება თავისუფალი და თანასწორი.
Բոլոր մարդիկ ծնվում են ազատ ու հավասար։
የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.
すべての人間は、生まれながらにして自由であり、カタカナも1948年。
人人生而自由,在尊嚴和權利上一律平等。㍿①½ﬁ
མི་རིགས་ཚང་མར་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས་དང་།
ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ ᎤᎾᏕᎿ. ᠪᠦᠷ ᠬᠦᠮᠦᠨ""".split("\n")

CODE = '''#include <stdio.h>
int main(int argc, char **argv) {
\tfor (int i = 0; i < 10; i++) printf("%d\\n", i * 0x1F + 3.14e-10);
    return argc > 1 ? atoi(argv[1]) : 0; // != == <= >= && || ->
}
def f(x_1, *args): return {k: v for k, v in args if k[:2] != "__"}  # ~100%
<div class="a-b">&nbsp;</div> SELECT * FROM t WHERE id=12345678901; $HOME/.bashrc'''


def categories():
    """A few characters of each category, of those that had it in Unicode 3.2 and have it now."""
    found = {}
    old = unicodedata.ucd_3_2_0
    for c in range(0x110000):
        category = unicodedata.category(chr(c))
        if category in ("Cn", "Cs", "Cc") or old.category(chr(c)) != category:
            continue
        found.setdefault(category, []).append(chr(c))
    return {k: [v[i * len(v) // 12] for i in range(min(12, len(v)))] for k, v in sorted(found.items())}


def texts():
    """[bytes] that golden.json has the ids of."""
    out = [line.encode() for line in SCRIPTS] + ["\n".join(SCRIPTS[:8]).encode(), CODE.encode(), b"", b" ", b"\n", b"a"]
    out += [(" ".join(v) + "".join(v) + "x".join(v)).encode() for v in categories().values()]
    out += [s.encode() for s in (
        "👩‍👩‍👧‍👦 👍🏽 🇺🇳🏴‍☠️ ❤️‍🔥 1️⃣ #️⃣ ☺︎ ☺️ 🫠x🧑🏿‍🚀y", "\u0301a\u0301\u0301 \u0308\u0327o\u0327\u0308 é e\u0301 ḍ̇ q̣̇ \u0345 각 각 ㄱㅏ",
        "a" + " " * 70 + "b" + "\n" * 20 + " \n \n\t\t\t x\r\n\r\n  \r y" + "\u00a0\u3000\u2028\u200b" * 3, " " * 200, "\n" * 70 + "x",
        "Hello<|endoftext|> world <|endoftext|><|endoftext|>", "<s>Hi</s> there<s> <unk><0x41><0xE2>", "<|im_start|>user\nhi  <mask>  <mask> x<|im_end|>\n",
        "<tool_call>{\"a\": 1}</tool_call>", "  <mask>x<mask>  \n<mask> day monday Day DAY day", "▁▁a▁b ▁c", "İstanbul ΑΣ ὈΔΥΣΣΕΎΣ ǅ ﬀ ½ Ⅷ ① ㎏ ﷺ",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * 2, "12345678901234567890 ٣٤٥ 1,234.5",
        "the" * 40 + " they’re WE'LL I'M can't 'S 'tis", "ννν ννννν xνννy", "x\u0000y\u0001\u007f", "word " * 30)]
    out += [b"a\xffb", b"\xc3", b"\xe2\x82", b"\xe2\x82x", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80\x80", b"\xed\xa0\x80\xed\xb0\x80", b"\xc0\xaf\xe0\x80\xaf",
            b"\xf4\x90\x80\x80\xf5\xf8\x88", b"ok \xfe\xff \xe4\xb8\xadx\xe4\xb8", bytes(range(128, 256)), b"\xf0\x80\x80\x41\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"]
    return out


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace("{1,3}", "")


def train(model, normalizer, pre_tokenizer, size, special=(), alphabet=()):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), initial_alphabet=list(alphabet), show_progress=False)
    tokenizer.train_from_iterator(SCRIPTS + [CODE] + SCRIPTS[:3] * 4, trainer)
    return tokenizer


def byte_level(normalizer, pre_tokenizer, size, special, **model):
    tokenizer = train(models.BPE(**model), normalizer, pre_tokenizer, size, special, pre_tokenizers.ByteLevel.alphabet())
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def fallback(normalizer, pre_tokenizer, size, special, **model):
    """Trained on words, as such models are; `pre_tokenizer` is what it has afterwards."""
    names = list(special) + ["<0x%02X>" % b for b in range(256)]
    tokenizer = train(models.BPE(byte_fallback=True, unk_token="<unk>", **model), normalizer, pre_tokenizers.Metaspace(prepend_scheme="always"), size, names)
    value = json.loads(tokenizer.to_str())
    value["added_tokens"] = [t for t in value["added_tokens"] if t["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(value))
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    else:
        value = json.loads(tokenizer.to_str())
        value["pre_tokenizer"] = None
        tokenizer = Tokenizer.from_str(json.dumps(value))
    return tokenizer


def template(tokenizer, token, after=None):
    single = token + " $A" + (" " + after if after else "")
    ids = [(t, tokenizer.token_to_id(t)) for t in (token, after) if t]
    return processors.TemplateProcessing(single=single, pair=single + " $B:1", special_tokens=ids)


def families():
    """{name: JSON text}: what golden.json has."""
    out = {}
    bl = pre_tokenizers.ByteLevel
    t = byte_level(None, bl(add_prefix_space=False), 420, ["<|endoftext|>"])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    value = json.loads(t.to_str())
    value["model"]["merges"] = [" ".join(m) for m in value["model"]["merges"]]
    value["model"]["continuing_subword_prefix"] = value["model"]["end_of_word_suffix"] = ""
    del value["model"]["ignore_merges"], value["model"]["byte_fallback"]
    out["gpt2"] = json.dumps(value)

    t = byte_level(None, pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), bl(add_prefix_space=False, use_regex=False)]), 500,
                   ["<|begin_of_text|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"], ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template(t, "<|begin_of_text|>")])
    out["llama3"] = json.dumps(drop_merges(json.loads(t.to_str())))

    t = byte_level(normalizers.NFC(), pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN), "isolated"), bl(add_prefix_space=False, use_regex=False)]), 400, [])
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([AddedToken(s, normalized=False) for s in ("<tool_call>", "</tool_call>")] + [AddedToken("<mask>", lstrip=True, rstrip=True)])
    out["qwen"] = t.to_str()

    t = fallback(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, 560, ["<unk>", "<s>", "</s>"], fuse_unk=True)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = template(t, "<s>", "</s>")
    t.add_tokens([AddedToken("<mask>", lstrip=True), AddedToken("day", single_word=True, normalized=True)])
    out["llama2"] = t.to_str()

    t = fallback(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"), 540, ["<pad>", "<unk>", "<s>", "</s>"], fuse_unk=True)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_tokens([AddedToken(s, normalized=False) for s in ("\n\n", "\n\n\n", "▁▁", "▁▁▁▁", "<mask>")])
    out["gemma"] = t.to_str()

    t = fallback(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), 540, ["<unk>", "<s>", "</s>"], fuse_unk=True)
    t.decoder = decoders.Metaspace(prepend_scheme="first", split=False)
    out["mistral"] = t.to_str()

    # no family's: the other rows of the tables
    t = train(models.BPE(unk_token="<unk>"), normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"[aeiou]{2}"), "æ")]),
              pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous")]), 300, ["<unk>"])
    t.add_tokens([AddedToken("<mask>", lstrip=True, rstrip=True), AddedToken("Day", single_word=True), AddedToken("free", single_word=True, normalized=False)])
    out["odd"] = t.to_str()
    t = train(models.BPE(unk_token="<unk>", fuse_unk=True), normalizers.Sequence([normalizers.NFKD()]),
              pre_tokenizers.Sequence([pre_tokenizers.Split("e", "merged_with_next"), pre_tokenizers.Digits(), pre_tokenizers.Punctuation("merged_with_previous"),
                                       pre_tokenizers.Metaspace(prepend_scheme="first")]), 300, ["<unk>"])
    t.decoder = decoders.Metaspace()
    out["odder"] = t.to_str()
    return out


def drop_merges(value):
    """A file whose vocabulary has words that no merge makes, which ignore_merges alone finds."""
    model = value["model"]
    made = {a + b for a, b in model["merges"][-12:]}
    model["merges"] = [m for m in model["merges"][:-12] if m[0] not in made and m[1] not in made]
    return value


def more():
    """{name: JSON text} of pipelines that only `compare` has."""
    out = {}
    P = pre_tokenizers
    kinds = ["isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next"]
    for k in kinds:
        for invert in (False, True):
            steps = P.Sequence([P.Split(Regex(r"\s+|\d"), k, invert), P.Punctuation(k)])
            out["split %s %s" % (k, invert)] = train(models.BPE(unk_token="<unk>"), normalizers.NFD(), steps, 280, ["<unk>"]).to_str()
    out["string split"] = train(models.BPE(unk_token="<unk>"), normalizers.NFC(), P.Split("an", "contiguous", True), 280, ["<unk>"]).to_str()
    for scheme in ("always", "first", "never"):
        for first in (P.Digits(), P.WhitespaceSplit(), P.Punctuation("isolated")):
            t = train(models.BPE(unk_token="<unk>", fuse_unk=scheme == "first"), normalizers.Sequence([normalizers.Prepend("_x"), normalizers.NFKC()]),
                      P.Sequence([first, P.Metaspace(prepend_scheme=scheme)]), 300, ["<unk>"])
            t.add_tokens([AddedToken("<mask>", lstrip=True), AddedToken("é", normalized=True)])
            t.decoder = decoders.Metaspace(prepend_scheme=scheme)
            out["metaspace %s %s" % (scheme, type(first).__name__)] = t.to_str()
    t = train(models.BPE(), None, P.Sequence([P.Split(Regex("o"), "isolated"), P.ByteLevel(add_prefix_space=True), P.Metaspace(prepend_scheme="first")]), 300,
              ["<s>"], P.ByteLevel.alphabet())
    t.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace(Regex("a+"), "b"), decoders.Strip("b", 2, 1)])
    out["prefix space"] = t.to_str()
    for name, normalizer in (("", None), (" lowercase", normalizers.Lowercase()), (" NFKD", normalizers.NFKD())):
        t = train(models.BPE(unk_token="<unk>"), normalizer, P.Whitespace(), 300, ["<unk>"])
        for i, content in enumerate(FLAGGED):
            add = t.add_special_tokens if i % 3 == 0 else t.add_tokens
            add([AddedToken(content, lstrip=bool(i & 1), rstrip=bool(i & 2), single_word=bool(i & 4), normalized=bool(i & 8))])
        out["flags" + name] = t.to_str()
    t = fallback(normalizers.Lowercase(), None, 540, ["<unk>"])
    t.add_tokens([AddedToken(s, single_word=True, lstrip=True, rstrip=True) for s in ("the", "The free", "day", "  ")])
    out["no fuse"] = t.to_str()
    return out


FLAGGED = ["<%s%d>" % ("Éx"[i % 2], i) for i in range(8)] + ["Wo%dé" % i for i in range(8)]  # each with other options


def made_up(random_, samples):
    """Bytes of pieces of samples and of any characters."""
    pieces = []
    for _ in range(random_.randint(1, 12)):
        kind = random_.random()
        if kind < 0.4:
            s = random_.choice(samples)
            a = random_.randrange(len(s) + 1)
            pieces.append(s[a:a + random_.randint(0, 20)])
        elif kind < 0.5:
            pieces.append(random_.choice(FLAGGED + [" ", "\t\n", "x", "_", "\u00a0", "e\u0301", "<É0> ", "wo8É"]).encode())
        elif kind < 0.6:
            pieces.append(random_.choice(["<mask>", "<s>", "</s>", "<|endoftext|>", "day", " ", "  ", "\n", "\n\n", "the", "free", "▁", "\t", "é", "Day", "_", "x"]).encode())
        elif kind < 0.9:
            low, high = random_.choice([(0, 0x80), (0x80, 0x250), (0x300, 0x370), (0x370, 0x600), (0x900, 0xE00), (0x1100, 0x1200), (0x2000, 0x2C00), (0x3000, 0x3200),
                                        (0xAC00, 0xD7A4), (0xFB00, 0xFFFE), (0x10000, 0x20000)])
            pieces.append("".join(chr(c) for c in (random_.randrange(low, high) for _ in range(random_.randint(1, 4))) if known(c)).encode())
        else:
            pieces.append(bytes(random_.randrange(256) for _ in range(random_.randint(1, 4))))
    return b"".join(pieces)


def known(c):
    """Whether a character is the same in the Unicode versions of everybody here."""
    old = unicodedata.ucd_3_2_0
    return old.category(chr(c)) not in ("Cn", "Cs") and old.category(chr(c)) == unicodedata.category(chr(c))


class Program:
    def __init__(self, program, path):
        self.process = subprocess.Popen([program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def encode(self, text):
        self.process.stdin.write(struct.pack("<I", len(text)) + text)
        self.process.stdin.flush()
        count, = struct.unpack("<I", self.read(4))
        ids = list(struct.unpack("<%di" % count, self.read(4 * count)))
        size, = struct.unpack("<I", self.read(4))
        return ids, self.read(size)

    def read(self, size):
        out = self.process.stdout.read(size)
        if len(out) != size:
            raise GaveUp("the program ended: status %d" % self.process.wait())
        return out


class GaveUp(Exception):
    pass


def decode(tokenizer, ids):
    try:
        return tokenizer.decode(ids, skip_special_tokens=False).encode()
    except BaseException:  # the reference's Strip fails on empty tokens
        return None


def differing(program, name, value, cases):
    """How many of [bytes] get other ids here than from the program, or are decoded to something else."""
    tokenizer, bad = Tokenizer.from_str(value), 0
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(value)
        file.flush()
        peer = Program(program, file.name)
        for text in cases:
            ids, decoded = peer.encode(text)
            right = tokenizer.encode(text.decode(errors="replace"), add_special_tokens=False).ids
            back = decode(tokenizer, right)
            if ids != right or (back is not None and back != decoded):
                bad += 1
                if bad <= 3:
                    print("%s: %r\n  reference %s %r\n  here      %s %r" % (name, text[:400], right[:200], back and back[:400], ids[:200], decoded[:400]))
        print("%s: %d of %d texts differ" % (name, bad, len(cases)), flush=True)
        peer.process.stdin.close()
    return bad


def compare(program, count, seed=None):
    seed = int(seed) if seed else random.randrange(1 << 30)
    random_, samples = random.Random(seed), texts()
    wrong = sum(differing(program, name, value, samples + [made_up(random_, samples) for _ in range(int(count))])
                for name, value in {**families(), **more()}.items())
    print("seed %d: %d differ" % (seed, wrong))
    return wrong > 0


def characters(program):
    all_ = [chr(c) for c in range(0x110000) if known(c)]
    runs = [all_[i:i + 256] for i in range(0, len(all_), 256)]
    cases = [join.join(run).encode() for run in runs for join in ("", " ", "a1.\n")]
    print("%d characters of %d categories" % (len(all_), len({unicodedata.category(c) for c in all_})))
    return sum(differing(program, name, value, cases) for name, value in {**families(), **more()}.items()) > 0


def gives_up(program, value, case):
    """Whether neither has ids for a text: an expression of the tokenizer's takes too many steps on it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(value)
        file.flush()
        peer = Program(program, file.name)
        try:
            peer.encode(case)
            return False
        except GaveUp:
            pass
    try:
        Tokenizer.from_str(value).encode(case.decode(), add_special_tokens=False)
    except BaseException as reason:  # the reference panics
        return "retry-limit" in str(reason)
    return False


def long(program, path, size=100, *paths):
    size, text = int(size) * 1000000, open(path, "rb").read()
    cases = [(text * (size // len(text) + 1))[:size]]
    cases += [(s * (size // 10 // len(s) + 1))[:size // 10].encode() for s in (" ", "\n", "a", "the ", "9", " \n", "\u4e2d\u6587", "e\u0301", "<s>", "<|endoftext|>", "ab", "-=")]
    wrong = 0
    for name, value in [(p, open(p).read()) for p in paths] or families().items():
        for case in cases:
            start, words = time.time(), "%s, %d bytes of %r" % (name, len(case), case[:12])
            try:
                wrong += differing(program, words, value, [case])
            except BaseException as reason:
                if not gives_up(program, value, case):
                    print("%s: %s" % (words, reason))
                    wrong += 1
                else:
                    print("%s: neither has ids: too many steps of an expression" % words)
            print("  %.1f s" % (time.time() - start), flush=True)
    return wrong > 0


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def golden(folder):
    """Ids are two digits of base 64 each, and a text that is decoded to itself is null: the file is to be small."""
    cases = texts()
    spell = lambda ids: "".join(DIGITS[i >> 6] + DIGITS[i & 63] for i in ids)
    out = {"texts": [t.hex() for t in cases], "ids": {}, "special": {}, "decoded": {}}
    for name, value in families().items():
        tokenizer = Tokenizer.from_str(value)
        with open(os.path.join(folder, name + ".json"), "w") as file:
            json.dump(json.loads(value), file, ensure_ascii=False, separators=(",", ":"))
        strings = [t.decode(errors="replace") for t in cases]
        ids = [tokenizer.encode(t, add_special_tokens=False).ids for t in strings]
        decoded = [tokenizer.decode(i, skip_special_tokens=False) for i in ids]
        out["ids"][name] = [spell(i) for i in ids]
        out["special"][name] = spell(tokenizer.encode(strings[0]).ids)
        out["decoded"][name] = [None if d == t else d for t, d in zip(strings, decoded)]
    with open(os.path.join(folder, "golden.json"), "w") as file:
        json.dump(out, file, ensure_ascii=False, separators=(",", ":"))


def trained(gdn, path, size):
    """The reference's trainer makes the same merges: it prefers the same pair of those that stand as often."""
    text = open(path, encoding="utf-8", newline="").read()
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "tok.json")
        subprocess.run([gdn, "data", "tokenizer", "--vocab", size, "--output", out, path], check=True)
        made, value = Tokenizer.from_file(out), json.load(open(out))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=int(size), min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
                                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    right = json.loads(tokenizer.to_str())["model"]
    alike = sum(a == b for a, b in zip(right["merges"], value["model"]["merges"]))
    print("%d of %d merges alike; vocabulary %s; decoded %s" % (alike, len(right["merges"]), right["vocab"] == value["model"]["vocab"],
                                                                made.decode(made.encode(text).ids) == text))
    return right["merges"] != value["model"]["merges"]


if __name__ == "__main__":
    sys.exit({"golden": golden, "compare": compare, "characters": characters, "long": long, "train": trained}[sys.argv[1]](*sys.argv[2:]))
