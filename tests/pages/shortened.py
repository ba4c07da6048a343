"""What makes the commands of pages short, and which of them are not run."""

import re

from tests.pages.commands import Command

TOY = (
    *("data.train_size=300", "data.validation_size=10", "data.test_size=10", "training.batch_tokens=512"),
    *("model.max_length=32", "training.attention_kernel=auto"),
)
SETTINGS = {
    "train": (
        *("training.max_minutes=null", "training.max_epochs=null", "training.max_updates=2"),
        *("training.validate_every=2", "training.precision=float32", "training.processes=1"),
    ),
    "train demo": (
        *("data.train_size=300", "data.validation_size=10", "data.test_size=10", "data.heldout_size=10"),
        *("tokenizer={kind: word}", "model.max_length=32", "training.attention_kernel=sdpa"),
    ),
    "train translation": (
        *("tokenizer.kind=word", "model.encoder.num_layers=1", "model.decoder.num_layers=1", "model.max_length=32"),
        *("training.batch_tokens=512", "training.attention_kernel=sdpa"),
    ),
    **{f"train ladder/gru-{name}": ("tokenizer={kind: word}",) for name in ("bahdanau", "fixed", "luong")},
    "plan multi30k-en-de": ("tokenizer={kind: word}", "training.batch_tokens=512", "training.max_minutes=1"),
    "train moving-digits": ("data.train_size=40", "data.validation_size=20", "data.test_size=20"),
    "train graph-families": ("data.size=60", "data.test_size=20"),
    "train digit-streams": ("data.train_size=200",),
    "train digit-questions": ("training.batch_tokens=512",),
    "train copy": TOY,
    "train reverse": TOY,
    "plan reverse": TOY,
    "scale copy": (*TOY, "data.train_size=3000"),
    "tune reverse": (*TOY, "data.train_size=3000"),
}
"""Recipe keys that are set at the end of a command which begins with these words."""

OPTIONS = {
    "tune": "--minutes 0.5",
    "scale": "--minutes 0.5",
    "advise": "--minutes 0.2",
    "lecture": "--minutes 0.2",
    "serve": "--port 0",
    "studio": "--port 0",
    "python -m benchmarks.in_context": "--scratch",
    "curl": "--fail-with-body --silent --show-error --max-time 60 --connect-to ::127.0.0.1: --cacert cert.pem",
}
"""Other words at the end of a command. A server takes a free port, and curl asks this machine."""

INDEX = "installs from an index of packages; test_wheel.py installs the package"
HOURS = "measures for minutes or hours; a row of CONTRIBUTING.md, whose program has tests of its own"
STORAGE = "needs a storage; tests/unit/data/test_s3.py and tests/unit/bulk/test_bulk.py read and write one"
TRIAL = "takes two minutes at the least; tests/unit/test_own_part.py runs it for two seeds"

NOT_RUN: dict[str, str] = {
    "make demo": "installs the package; its second half is `regardant demo`, which test_wheel.py shortens",
    "make test": "runs this test",
    "make docs": "builds the site; tests/unit/docs/test_site.py does",
    "make experiments": HOURS,
    "make experiments EXPERIMENT=depth": HOURS,
    "make experiments EXPERIMENT=--draw": "writes to docs/experiments",
    "make bench-training": HOURS,
    "make bench NANOGPT=/path/to/nanoGPT": HOURS,
    "make bench-decoding": HOURS,
    "make bench-engines": HOURS,
    "make bench-exports": HOURS,
    "make bench-models NANOGPT=/path/to/nanoGPT": HOURS,
    "make bench-sampling": HOURS,
    'make bench-attention BENCH="--run runs/demo"': HOURS,
    "pip install 'regardant[ray]'": INDEX,
    "pip install 'regardant[serve]'": INDEX,
    "pip install 'regardant[studio]'": INDEX,
    "regardant translate runs/demo --data s3://bucket/en --out s3://bucket/fr --column text": STORAGE,
    "regardant translate runs/demo --data s3://bucket/en --out s3://bucket/fr --on ray": STORAGE,
    "regardant translate ... --on ray --address head:6379": "needs a cluster of Ray",
    ".venv/bin/regardant try my_attention.py --seeds 3 --minutes 1": TRIAL,
    "regardant try l2_attention.py --seeds 3 --minutes 1": TRIAL,
    "regardant compare runs/digits runs/no-positions": "needs what its tutorial trains; docs/using.md has another",
    "torchrun --standalone --nproc-per-node=8 -m regardant train RECIPE --out RUN": (
        "needs eight accelerators; tests/unit/training/test_strategies.py starts torchrun with two processes"
    ),
}
"""Commands that are not run, and why."""

COVERAGE = "docs/coverage.md"

NOT_RUN_THERE = {
    r"regardant studio # .*": "names a page of the studio; tests/browser opens them",
    r"regardant train [\w/-]+( && .*)?": "tests/unit/checks/test_check_recipes.py trains every recipe",
    r"regardant (tune|scale|lecture) .*": "trains many models; docs/using.md has one of each verb",
}
"""Commands of the list of what lectures describe that are not run, as patterns, and why."""


def is_run(command: Command) -> bool:
    """Return whether a command is run."""
    if command.page == COVERAGE and any(re.fullmatch(pattern, command.text) for pattern in NOT_RUN_THERE):
        return False
    return command.text not in NOT_RUN


def begins(text: str, start: str) -> bool:
    """Return whether a command, or a call of the program, begins with these words."""
    words = text.removeprefix(".venv/bin/").removeprefix("regardant ")
    return f"{words} ".startswith(f"{start} ")


def shortened(text: str) -> str:
    """Return a command of a page as the test runs it."""
    keys = [key for start, keys in SETTINGS.items() if begins(text, start) for key in keys]
    options = [options for start, options in OPTIONS.items() if begins(text, start)]
    return " ".join([text, *(f"--set '{key}'" for key in keys), *options])
