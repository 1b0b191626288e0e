"""What the tests of model/huggingface share: its module, the specification, golden files, and what a test says where it fails."""

import os
import sys

SOURCE = os.environ["SOURCE"]
sys.path[:0] = [os.path.join(SOURCE, "model/huggingface"), os.path.join(SOURCE, "tests/golden")]
os.environ.update(HF_HOME=os.path.abspath("huggingface_home"), HF_HUB_OFFLINE="1") # where transformers keeps code that it loads

try:
    import h5py
    import torch
    import transformers
    import yaml
except ImportError as error:
    print(f"skipped: Python has no {error.name}")
    sys.exit(77)
if tuple(int(number) for number in transformers.__version__.split(".")[:2]) < (5, 4):
    print(f"skipped: transformers {transformers.__version__} is older than 5.4")
    sys.exit(77)

import gdn_reference as reference
import modeling_gdn
from configuration_gdn import DELTA, RULES, GdnConfig
from modeling_gdn import GdnForCausalLM

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

# Logits of these models are about 1 and go through some 50 float32 roundings of 6e-8 a layer; 7e-7 was the worst seen. A wrong epsilon
# moves them by 1e-5 and more, anything else by 1e-3.
LOGITS = 1e-5


def check(holds, *what):
    if not holds:
        print("FAILED:", *what)
        sys.exit(1)


def close(a, b, tolerance, *what):
    """Largest difference at most `tolerance`."""
    worst = (a.double() - b.double()).abs().max().item()
    check(worst <= tolerance, *what, f"differ by {worst:.3g}, more than {tolerance:.3g}")


def refused(words, call, *arguments, **keywords):
    """An error that has the words."""
    try:
        call(*arguments, **keywords)
    except (ValueError, FileNotFoundError) as error:
        check(words in str(error), f"'{words}' is missing in: {error}")
        return
    check(False, f"no error with '{words}'")


class Golden:
    """A golden file: the specification's model, its weights as float64 and the batch of its first step."""

    def __init__(self, path):
        with h5py.File(path) as file:
            self.weights = {}
            file["initial"].visititems(lambda name, item: self.weights.__setitem__(
                name.replace("/", "."), torch.from_numpy(item[()]).double()) if hasattr(item, "shape") else None)
            tokens = torch.from_numpy(file["tokens"][()]).long()
            self.cross_entropy = float(file["trajectory/ce"][0])
            self.gradient = {}
            file["gradient"].visititems(lambda name, item: self.gradient.__setitem__(
                name.replace("/", "."), torch.from_numpy(item[()])) if hasattr(item, "shape") else None)
        self.model, self.train, data = reference.load_config(path[:-3] + ".yaml")
        length, rows = self.train.sequence_length, self.train.batch_size
        self.chunk = torch.stack([tokens[i * length:(i + 1) * length + 1] for i in range(rows)]) # [B, S + 1]
        # whether the loss of the first step is the cross entropy alone, of all tokens and each seeing all before it
        more = (*vars(self.train.dropout).values(), self.train.z_loss, self.model.delta.l1_weight)
        self.plain = not any(more) and not data and not self.model.exit.layers and self.model.delta.regularizer == "none"

    def logits(self):
        """The specification's of the batch, a sample one document, without dropout, in float64."""
        active = reference.active_count(0, self.model.delta)
        tokens, dropout = self.chunk[:, :-1], reference.Dropout(reference.TrainConfig(), 0)
        every = torch.ones_like(tokens, dtype=torch.bool) # none is padding
        return reference.forward(self.weights, tokens, torch.zeros_like(tokens), every, self.model, active, dropout)[0]
