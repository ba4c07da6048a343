"""Marian's tokenizers: the ids of texts are those of transformers."""

import io
import json
import shutil
import warnings

import pytest
import torch

from regardant import run
from regardant.errors import DataError, RunError
from regardant.interop.huggingface.sentencepiece import SOURCE, TARGET, VOCABULARY, read_backends, read_model
from regardant.run.importing import import_model
from tests.unit.interop.samples import sample

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

sentencepiece = pytest.importorskip("sentencepiece")

ENGLISH = ["the old film", "a cat sat on the mat", "two dogs saw the cats", "the cat saw a film", "old dogs sat"]
GERMAN = ["der alte Film", "eine Katze saß auf der Matte", "zwei Hunde sahen die Katzen", "die Katze sah einen Film"]
TEXTS = [
    "der die saw",
    "the cats  sat on a film",
    "  the ﬁlm sat",
    "dogs ß saw x",
    "two matted dogs",
    ">>deu<< the cat",
    "日 the",
]


def train(texts, **options):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts * 20), model_writer=written, vocab_size=48, minloglevel=2, **options
    )
    return written.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the two models and the ids of all pieces."""
    folder = tmp_path_factory.mktemp("marian")
    pieces = ["</s>", "<unk>"]
    for name, texts in ((SOURCE, ENGLISH), (TARGET, GERMAN)):
        (folder / name).write_bytes(train(texts, hard_vocab_limit=False))
        loaded = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        pieces += [loaded.id_to_piece(number) for number in range(loaded.get_piece_size())]
    pieces = [piece for piece in dict.fromkeys(pieces) if piece != "<s>"]
    ids = {piece: number for number, piece in enumerate([*pieces, ">>deu<<", "<pad>"])}
    (folder / VOCABULARY).write_text(json.dumps(ids), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def theirs(files):
    transformers = pytest.importorskip("transformers")
    with warnings.catch_warnings():  # it recommends sacremoses
        warnings.simplefilter("ignore")
        return transformers.MarianTokenizer(*(str(files / name) for name in (SOURCE, TARGET, VOCABULARY)))


@pytest.mark.parametrize("text", TEXTS)
def test_the_ids_of_a_source_are_those_of_transformers(files, theirs, text):
    source, _ = read_backends(files)
    assert source.encode(text, add_special_tokens=False).ids == theirs(text)["input_ids"][:-1]


def test_the_ids_of_a_target_are_those_of_transformers(files, theirs):
    _, target = read_backends(files)
    for text in [*GERMAN, "die alte Matte"]:
        assert target.encode(text, add_special_tokens=False).ids == theirs(text_target=text)["input_ids"][:-1]


@pytest.fixture(scope="module")
def translator(pair, files, theirs, tmp_path_factory):
    """A model of transformers with these tokenizers, and the run that it is imported to."""
    import transformers

    folder = tmp_path_factory.mktemp("translator")
    config = pair("marian").theirs.config.to_dict()
    size = len(theirs)
    config |= {"vocab_size": size, "decoder_vocab_size": size, "eos_token_id": 0, "pad_token_id": size - 1}
    config = transformers.MarianConfig(**{**config, "decoder_start_token_id": size - 1})
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "encoder_attn" in name:
                parameter.mul_(50)  # from its first weights, a model translates all sources alike
    model.final_logits_bias[0, 0] = -5
    model.generation_config.num_beams = 1
    model.save_pretrained(folder / "there")
    for name in (SOURCE, TARGET, VOCABULARY):
        shutil.copy(files / name, folder / "there" / name)
    named = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    (folder / "there" / "special_tokens_map.json").write_text(json.dumps(named), encoding="utf-8")
    import_model(folder / "there", folder / "run", log=lambda line: None)
    return model, run.load(folder / "run")


def test_a_folder_with_them_becomes_a_translator(theirs, translator, tmp_path):
    model, own = translator
    tokenizers = own.translator.tokenizers
    assert tokenizers.source is not tokenizers.target and not own.config.tokenizer.joint
    assert tokenizers.target.decode(tokenizers.target.encode(GERMAN[1])) == GERMAN[1]
    with pytest.raises(RunError, match="a tokenizer for sources and one for targets"):
        own.export("hf", tmp_path / "back")
    batch = theirs(TEXTS[:2], return_tensors="pt", padding=True)
    suppressed = [1, len(theirs) - 1]
    written = model.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=9, suppress_tokens=suppressed)
    found = own.translate(TEXTS[:2], beam_size=1, max_length_ratio=0, max_length_extra=9)
    # Their decoder strips the spaces at the ends, which an untrained model writes.
    assert [one.text.strip() for one in found] == theirs.batch_decode(written, skip_special_tokens=True)


@pytest.mark.usefixtures("shapes_unchecked")  # sizes of a graph are symbols
@pytest.mark.parametrize("to", ["ctranslate2", pytest.param("onnx", marks=pytest.mark.slow)])
def test_an_export_reads_the_sources_of_its_run(translator, tmp_path, to):
    _, own = translator
    pairs = [{"source": source, "target": target} for source, target in zip(ENGLISH, GERMAN, strict=False)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)) + "\n", encoding="utf-8")
    exported = own.export(to, tmp_path / "there", "float32", data=[tmp_path / "pairs.jsonl"])
    assert exported.failures == () and exported.parity.identical == 1
    answers = sample(tmp_path / "there", TEXTS)
    assert answers == [one.text for one in own.translate(TEXTS)] and len(set(answers)) > 3


def test_other_models_and_damaged_files_are_refused(files, tmp_path):
    (tmp_path / "a.spm").write_bytes(train(ENGLISH, model_type="bpe", hard_vocab_limit=False))
    with pytest.raises(DataError, match="is a SentencePiece model of type 2, and only unigram models"):
        read_model(tmp_path / "a.spm")
    (tmp_path / "b.spm").write_bytes((files / SOURCE).read_bytes()[:-3])
    with pytest.raises(DataError, match=r"b\.spm is not a SentencePiece model"):
        read_model(tmp_path / "b.spm")
    for name in (SOURCE, TARGET):
        shutil.copy(files / name, tmp_path / name)
    for content in ('{"a": 3}', "{", "[1]"):
        (tmp_path / VOCABULARY).write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=r"vocab\.json is not a vocabulary"):
            read_backends(tmp_path)
