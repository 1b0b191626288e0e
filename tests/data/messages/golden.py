#!/usr/bin/env python3
"""Writes NAME.txt for each template: the ids of talks.jsonl, and which of them count (1), one below the other, as transformers has them.

    golden.py       with Python, transformers and jinja2, from this folder

Ids are those of the published chat templates. What counts is found by the same templates with transformers' mark {% generation %}
around the assistant's contents and end tokens, which changes no id.
"""
import json
import re

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

TOKENIZERS = "../tokenizer/golden/"
# ChatML as in transformers' documentation and many models; Meta's of Llama 3.
CHATML = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
CHATML_MARKED = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n'}}{% if message['role'] == 'assistant' %}"
                 "{% generation %}{{message['content'] + '<|im_end|>'}}{% endgeneration %}{% else %}{{message['content'] + '<|im_end|>'}}"
                 "{% endif %}{{'\n'}}{% endfor %}")
LLAMA3 = ("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + "
          "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + "
          "content %}{% endif %}{{ content }}{% endfor %}")
LLAMA3_MARKED = ("{% for message in messages %}{% if loop.index0 == 0 %}{{ bos_token }}{% endif %}{{ '<|start_header_id|>' + message['role'] + "
                 "'<|end_header_id|>\n\n' }}{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] | trim + '<|eot_id|>' }}"
                 "{% endgeneration %}{% else %}{{ message['content'] | trim + '<|eot_id|>' }}{% endif %}{% endfor %}")


def llama3():
    """The tokenizer in Llama 3's form, with the names of its special tokens; messages.sh makes the same."""
    text = open(TOKENIZERS + "llama3.json").read()
    for old, new in (("im_start", "start_header_id"), ("im_end", "end_header_id"), ("endoftext", "eot_id")):
        text = text.replace(f"<|{old}|>", f"<|{new}|>")
    return Tokenizer.from_str(text)


for name, tokenizer, plain, marked in (
        ("chatml", Tokenizer.from_file(TOKENIZERS + "qwen.json"), CHATML, CHATML_MARKED),
        ("llama3", llama3(), LLAMA3, LLAMA3_MARKED)):
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin_of_text|>" if name == "llama3" else None,
                                   clean_up_tokenization_spaces=False)
    ids, mask = [], []
    for line in open("talks.jsonl"):
        if not line.strip():
            continue
        messages = json.loads(line)["messages"]
        with_mask = fast.apply_chat_template(messages, chat_template=marked, tokenize=True, return_dict=True,
                                             return_assistant_tokens_mask=True)
        one = fast.apply_chat_template(messages, chat_template=plain, tokenize=True, return_dict=True)["input_ids"]
        assert one == with_mask["input_ids"], name
        ids += one
        mask += with_mask["assistant_masks"]
    with open(name + ".txt", "w") as out:
        print(*ids, file=out)
        print(*mask, file=out)
    print(name, len(ids), sum(mask))
