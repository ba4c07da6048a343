from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regardant.data.batching import (
    Arrays,
    BatchPlan,
    EncodedPairs,
    Lengths,
    PairBatch,
    pad,
    padding_share,
    plan_batches,
)
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.errors import DataError
from regardant.modalities.text import SentenceCodec

length = st.integers(1, 60) | st.integers(250, 300)
pairs_of_lengths = st.lists(st.tuples(length, length), max_size=200).map(
    lambda pairs: (
        np.array([source for source, _ in pairs], dtype=np.int64),
        np.array([target for _, target in pairs], dtype=np.int64),
    )
)


def batch_of(sources: list, targets: list) -> PairBatch:
    return PairBatch(pad(sources), pad(targets, sos=True))


def natural_lengths(size: int) -> tuple[Lengths, Lengths]:
    """Lengths as of short captions in subwords: 16 tokens on average, the two sides correlated by 0.86."""
    generator = np.random.default_rng(0)
    both = generator.multivariate_normal([2.7, 2.75], [[0.091, 0.087], [0.087, 0.113]], size)
    source, target = np.exp(both).round().astype(np.int64).clip(2, 60).T
    return source, target


@given(
    lengths=pairs_of_lengths,
    batch_tokens=st.integers(300, 3000),
    seed=st.integers(0, 5),
    epoch=st.integers(0, 5),
)
def test_every_sentence_is_in_one_batch_within_the_budget(
    lengths: tuple[Lengths, Lengths], batch_tokens: int, seed: int, epoch: int
) -> None:
    source, target = lengths
    batches = plan_batches(source, target, batch_tokens=batch_tokens, seed=seed, epoch=epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(source)))
    for batch in batches:
        assert 0 < len(batch) * max(source[batch].max(), target[batch].max()) <= batch_tokens


def same(one: BatchPlan, other: BatchPlan) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def test_a_plan_depends_on_its_arguments_alone() -> None:
    source, target = natural_lengths(2000)
    source.flags.writeable = target.flags.writeable = False
    np.random.seed(1)
    one = plan_batches(source, target, batch_tokens=512, seed=3, epoch=4)
    np.random.seed(2)
    other = plan_batches(source.astype(np.int32), target.astype(np.uint16), batch_tokens=512, seed=3, epoch=4)
    assert same(one, other)


def test_a_batch_one_token_over_the_budget_is_two() -> None:
    lengths = np.array([2, 2, 3])
    batches = plan_batches(lengths, lengths, batch_tokens=8, seed=0, epoch=0)
    assert sorted(lengths[batch].tolist() for batch in batches) == [[2, 2], [3]]


def test_long_sentences_of_almost_one_length_keep_the_budget() -> None:
    lengths = np.random.default_rng(0).integers(200, 240, 5000)
    for batch in plan_batches(lengths, lengths, batch_tokens=2000, seed=0, epoch=0):
        assert len(batch) * lengths[batch].max() <= 2000


def neighbours_kept(one: BatchPlan, other: BatchPlan, size: int) -> float:
    def places(batches: BatchPlan) -> np.ndarray:
        place = np.empty(size, dtype=np.int64)
        for number, batch in enumerate(batches):
            place[batch] = number
        return place

    both = places(one) * len(other) + places(other)
    _, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    sizes = np.array([len(batch) for batch in one])
    return float((counts[inverse] / sizes[places(one)]).mean())


@pytest.mark.parametrize("seed, epoch", [(0, 1), (1, 0)])
def test_another_epoch_or_seed_orders_and_mixes_batches_anew(seed: int, epoch: int) -> None:
    source, target = natural_lengths(29_000)
    first = plan_batches(source, target, batch_tokens=4096, seed=0, epoch=0)
    second = plan_batches(source, target, batch_tokens=4096, seed=seed, epoch=epoch)
    lengths = [int(target[batch].max()) for batch in first]
    assert abs(np.corrcoef(lengths, range(len(lengths)))[0, 1]) < 0.3  # short and long in turn
    assert neighbours_kept(first, second, len(source)) < 0.5
    assert neighbours_kept(first, first, len(source)) == 1


def test_little_of_a_batch_is_padding() -> None:
    source, target = natural_lengths(29_000)
    batches = plan_batches(source, target, batch_tokens=4096, seed=0, epoch=0)
    assert sum(padding_share(batches, source, target)) < 0.1
    assert len(batches) < 1.15 * max(source.sum(), target.sum()) / 4096 + 1


def test_padding_share_counts_the_places_that_hold_padding() -> None:
    batches = [np.array([0, 2]), np.array([1])]
    source, target = np.array([3, 5, 1]), np.array([2, 4, 2])
    assert padding_share(batches, source, target) == pytest.approx((2 / 11, 0))


def test_no_sentences_make_no_batches() -> None:
    nothing = np.array([], dtype=np.int64)
    assert plan_batches(nothing, nothing, batch_tokens=10, seed=0, epoch=0) == []


@pytest.mark.parametrize("sides", [([3, 11, 4], [3, 3, 3]), ([3, 3, 3], [3, 11, 4])])
def test_a_sentence_longer_than_a_batch_is_refused_in_one_line(sides: tuple[list[int], list[int]]) -> None:
    with pytest.raises(DataError, match=r"sentence pair 1 \(from 0\) has 11 tokens on one side") as refusal:
        plan_batches(*map(np.array, sides), batch_tokens=10, seed=0, epoch=0)
    assert "\n" not in str(refusal.value)


def test_parts_of_a_batch_are_its_rows_and_there_may_be_none_left() -> None:
    batch = batch_of([[7, 8], [], [9]], [[5], [6, 7, 8], []])
    parts = [batch.part(number, 2) for number in range(2)]
    assert [part.source.tolist() for part in parts] == [batch.source[::2].tolist(), batch.source[1:2].tolist()]
    assert [part.target.tolist() for part in parts] == [batch.target[::2].tolist(), batch.target[1:2].tolist()]
    assert sum(part.count for part in parts) == batch.count
    assert batch.part(3, 4).count == 0


def test_a_batch_is_padded_ended_and_begun() -> None:
    batch = batch_of([[7, 8], [], np.array([9], dtype=np.uint16)], [[5], [6, 7, 8], []])
    assert batch.source.tolist() == [[7, 8, EOS], [EOS, PAD, PAD], [9, EOS, PAD]]
    assert batch.target.tolist() == [[SOS, 5, EOS, PAD, PAD], [SOS, 6, 7, 8, EOS], [SOS, EOS, PAD, PAD, PAD]]
    assert batch.inputs["source"] is batch.source
    assert batch.inputs["target"].tolist() == [[SOS, 5, EOS, PAD], [SOS, 6, 7, 8], [SOS, EOS, PAD, PAD]]
    assert batch.targets.tolist() == [[5, EOS, PAD, PAD], [6, 7, 8, EOS], [EOS, PAD, PAD, PAD]]
    assert batch.count == 2 + 4 + 1
    assert pad([[7]]).tolist() == [[7, EOS]]
    assert pad([[7], [8, 9]], eos=False).tolist() == [[7, PAD], [8, 9]]


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6))
def test_joined_arrays_are_the_arrays(rows: list[list[int]]) -> None:
    joined = Arrays.join([[np.array(row, dtype=np.uint16)] for row in rows])
    assert [joined[at].tolist() for at in range(len(joined))] == rows
    assert joined.lengths.tolist() == [len(row) for row in rows]


def test_a_batch_moves_with_both_sides() -> None:
    moved = batch_of([[5]], [[6]]).to(torch.device("meta"))
    assert (moved.source.device.type, moved.target.device.type) == ("meta", "meta")


TEXTS = {
    "source": [f"the cat number {i} sat on {'the ' * (i % 7)}mat" for i in range(25)],
    "target": [f"le chat {i} s'est assis sur {'le ' * (i % 3)}tapis" for i in range(25)],
}


@pytest.fixture(scope="module")
def tokenizers() -> Tokenizers:
    return Tokenizers.train(TokenizerConfig(joint=False), TEXTS["source"], TEXTS["target"], 300)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def build(texts: dict[str, list[str]], tokenizers: Tokenizers, folder: Path, chunk: int = 10) -> EncodedPairs:
    codec, chunks = SentenceCodec(tokenizers.source), []
    for start in range(0, len(texts["source"]), chunk):
        sources, targets = (texts[side][start : start + chunk] for side in ("source", "target"))
        written = tokenizers.target.encode_batch(targets)
        chunks.append((codec.encode(sources), [np.array(ids, codec.dtype) for ids in written]))
    return EncodedPairs.build(codec, chunks, folder)


@pytest.mark.parametrize("chunk", [4, 25, 10_000])
def test_stored_pairs_are_the_tokenised_pairs(chunk: int, tokenizers: Tokenizers, tmp_path: Path) -> None:
    build(TEXTS, tokenizers, tmp_path / "train", chunk)
    pairs = EncodedPairs.load(SentenceCodec(tokenizers.source), tmp_path / "train")
    assert files(tmp_path) == ["train"]
    assert len(pairs) == 25
    chosen = [3, 0, 24]
    batch = pairs.batch(chosen)
    sources = tokenizers.source.encode_batch([TEXTS["source"][i] for i in chosen])
    targets = tokenizers.target.encode_batch([TEXTS["target"][i] for i in chosen])
    assert batch.source.tolist() == pad(sources).tolist()
    assert batch.target.tolist() == pad(targets, sos=True).tolist()


def test_stored_lengths_are_what_a_sentence_takes_of_a_batch(tokenizers: Tokenizers, tmp_path: Path) -> None:
    pairs = build(TEXTS, tokenizers, tmp_path / "train")
    for i in range(len(pairs)):
        batch = pairs.batch([i])
        assert batch.source.shape[1] == pairs.source_lengths[i]
        assert batch.target.shape[1] - 1 == pairs.target_lengths[i] == batch.count


def test_pairs_of_empty_texts_can_be_stored(tokenizers: Tokenizers, tmp_path: Path) -> None:
    pairs = build({"source": ["", ""], "target": ["", ""]}, tokenizers, tmp_path / "train")
    assert pairs.source_lengths.tolist() == pairs.target_lengths.tolist() == [1, 1]
    assert pairs.batch([0, 1]).target.tolist() == [[SOS, EOS], [SOS, EOS]]


@pytest.mark.parametrize("words, dtype", [(2**16 - 5, np.uint16), (2**16 - 4, np.int32)])
def test_ids_are_stored_in_the_smallest_type_that_holds_them(words: int, dtype: type, tmp_path: Path) -> None:
    texts = [f"w{i}" for i in range(words)]
    large = Tokenizers.train(TokenizerConfig(kind="word"), texts, texts, 10**6)
    pairs = build({"source": texts, "target": texts}, large, tmp_path / "train")
    assert np.load(tmp_path / "train" / "source.ids.npy", mmap_mode="r").dtype == dtype
    last = [words - 1, 0]
    assert pairs.batch(last).source[:, 0].tolist() == [large.source.encode(texts[i])[0] for i in last]


def test_building_again_replaces_and_a_failed_build_leaves_what_was(tokenizers: Tokenizers, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "train"
    build(TEXTS, tokenizers, folder)
    build({side: texts[:5] for side, texts in TEXTS.items()}, tokenizers, folder)
    with pytest.raises(KeyError):
        build({"source": ["a"]}, tokenizers, folder)
    assert len(EncodedPairs.load(SentenceCodec(tokenizers.source), folder)) == 5
    assert files(folder.parent) == ["train"]


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [remove, empty, shorten])
@pytest.mark.parametrize("name", ["source.ids.npy", "target.starts.npy"])
def test_damaged_pairs_are_refused_in_one_line(
    damage: Callable[[Path], None], name: str, tokenizers: Tokenizers, tmp_path: Path
) -> None:
    build(TEXTS, tokenizers, tmp_path / "train")
    damage(tmp_path / "train" / name)
    with pytest.raises(DataError, match=r"holds no encoded pairs .*: delete it and train again") as refusal:
        EncodedPairs.load(SentenceCodec(tokenizers.source), tmp_path / "train")
    assert "\n" not in str(refusal.value)
