"""What cannot be imported is refused in one line, by the name of the setting and its value."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from regardant import run
from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import PAD
from regardant.errors import DataError, RegardantError, RunError
from regardant.run.importing import import_model

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

REFUSED = {
    "another family": ("bert", {"model_type": "mamba"}, ["model_type is 'mamba'", "bert, gpt2, llama"]),
    "no family": ("bert", {"model_type": None}, ["model_type is None"]),
    "another architecture": (
        "bert",
        {"architectures": ["BertForQuestionAnswering"]},
        ["architectures is 'BertForQuestionAnswering'", "BertForMaskedLM"],
    ),
    "more token types": ("bert", {"type_vocab_size": 3}, ["type_vocab_size is 3", "2 or 1"]),
    "relative positions": ("bert", {"position_embedding_type": "relative_key"}, ["position_embedding_type is 'rel"]),
    "a decoder": ("bert", {"is_decoder": True}, ["is_decoder is True", "only with False"]),
    "two matrices": ("bert", {"tie_word_embeddings": False}, ["tie_word_embeddings is False"]),
    "another activation": ("bert", {"hidden_act": "mish"}, ["hidden_act is 'mish'", "gelu, gelu_new"]),
    "scores by layer": ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, ["scale_attn_by_inverse_layer_idx is True"]),
    "stretched positions": (
        "llama",
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 9.0}},
        ["rope_type is 'y"],
    ),
    "biases": ("llama", {"attention_bias": True}, ["attention_bias is True"]),
    "two vocabularies": ("marian", {"decoder_vocab_size": 50}, ["decoder_vocab_size is 50", "vocab_size is 40"]),
    "a list for a number": ("vit", {"image_size": [12, 12]}, ["hold invalid values"]),
    "labels without numbers": ("vit", {"id2label": {"a": "cat"}}, ["hold invalid values"]),
    "no number": ("gpt2", {"n_head": "many"}, ["num_heads", "'many'"]),
    "a vocabulary of one word": ("gpt2", {"vocab_size": 1}, ["vocab_size is 1"]),
    "words of other weights": ("gpt2", {"vocab_size": 99}, ["transformer.wte.weight of the shape", "does not match"]),
    "other decoders": ("marian", {"decoder_ffn_dim": 32}, ["decoder_ffn_dim is 32", "encoder_ffn_dim differs"]),
    "norms elsewhere": ("marian", {"normalize_before": True}, ["normalize_before is True"]),
    "a gated network": ("t5", {"feed_forward_proj": "gated-gelu"}, ["feed_forward_proj is 'gated-gelu'"]),
    "no patches": ("vit", {"patch_size": 0}, ["hold invalid values"]),
    "no width": ("t5", {"d_model": 0}, ["hold invalid values"]),
    "one label": (
        "bert_classes",
        {"id2label": {"0": "LABEL_0"}},
        ["id2label is {'0': 'LABEL_0'}", "writes one number", "two labels or more"],
    ),
    "one label by its number": ("vit", {"id2label": None, "num_labels": 1}, ["id2label is {'0': 'LABEL_0'}"]),
    "several labels of a text": (
        "bert_classes",
        {"problem_type": "multi_label_classification"},
        ["problem_type is 'multi_label_classification'", "single_label_classification"],
    ),
    "several labels of an image": (
        "vit",
        {"problem_type": "multi_label_classification"},
        ["problem_type is 'multi_label_classification'", "single_label_classification"],
    ),
    "patches that do not fill an image": ("vit", {"patch_size": 5}, ["image_size is 12", "patch_size 5"]),
    "heads that do not divide": ("gpt2", {"n_head": 3}, ["d_model (16)", "num_heads (3)"]),
    "fewer words than the tokenizer has": ("bert", {"vocab_size": 9}, ["vocab_size is 9", "tokenizer.json has the id"]),
    "no number of words": ("bert", {"vocab_size": None}, ["vocab_size is None"]),
    "fewer layers than the weights have": (
        "bert",
        {"num_hidden_layers": 1},
        ["the weights hold bert.encoder.layer.1.", "BertForMaskedLM of these settings does not have"],
    ),
    "more layers than the weights have": ("gpt2", {"n_layer": 3}, ["the weights hold no transformer.h.2."]),
    "another width": (
        "bert",
        {"intermediate_size": 32},
        ["there/model.safetensors does not fit this model", "of another shape"],
    ),
}


@pytest.fixture
def copied(pair, tmp_path):
    """What copies the folder of a tiny model, its config.json changed."""

    def copy(name, **changed):
        folder = tmp_path / "there"
        shutil.copytree(pair(name).folder, folder)
        edit(folder / "config.json", **changed)
        return folder

    return copy


def edit(path, **changed):
    """Change fields of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changed), encoding="utf-8")


def refusal(folder):
    """The one line in which a folder is refused; nothing is left behind."""
    with pytest.raises(RegardantError) as found:
        import_model(folder, folder.parent / "run", log=lambda line: None)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    (line,) = str(found.value).splitlines()
    return line


@pytest.mark.parametrize("case", REFUSED)
def test_a_setting_that_cannot_be_expressed_is_named_with_its_value(copied, case):
    name, changed, phrases = REFUSED[case]
    line = refusal(copied(name, **changed))
    assert all(phrase in line for phrase in phrases), line


@pytest.mark.parametrize("number", [-1, 40])
def test_an_id_outside_the_vocabulary_is_no_token(copied, tmp_path, number):
    import_model(copied("llama", pad_token_id=number), tmp_path / "run", log=lambda line: None)
    assert Tokenizers.load(tmp_path / "run" / "tokenizer.json").source.config.special[PAD] is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"resample": 3}, "resample is 3, and only images with resample 2"),
        ({"do_center_crop": True}, "do_center_crop is True, and only images with do_center_crop False"),
        ({"do_rescale": False}, "do_rescale is False, and only images with do_rescale True"),
        (
            {"rescale_factor": 1 / 127.5},
            "rescale_factor is 0.00784313725490196, and only images with rescale_factor 0.0039",
        ),
    ],
)
def test_pixels_that_a_run_does_not_make_are_refused(copied, changed, said):
    folder = copied("vit")
    edit(folder / "preprocessor_config.json", **changed)
    assert f"preprocessor_config.json: {said}" in refusal(folder)


def test_pixels_as_transformers_makes_them_by_default_are_imported(copied, tmp_path):
    folder = copied("vit")
    edit(folder / "preprocessor_config.json", rescale_factor=0.003921569, do_center_crop=None)
    import_model(folder, tmp_path / "run", log=lambda line: None)
    assert json.loads((tmp_path / "run" / "image.json").read_text("utf-8"))["mean"] == [0.1, 0.2, 0.3]
    (folder / "preprocessor_config.json").unlink()
    import_model(folder, tmp_path / "bare", log=lambda line: None)
    assert json.loads((tmp_path / "bare" / "image.json").read_text("utf-8"))["mean"] == [0.5] * 3


def test_pixels_that_are_not_normalised_are_imported_as_they_are(copied, tmp_path):
    folder = copied("vit")
    edit(folder / "preprocessor_config.json", do_normalize=False)
    import_model(folder, tmp_path / "run", log=lambda line: None)
    statistics = json.loads((tmp_path / "run" / "image.json").read_text("utf-8"))
    assert (statistics["mean"], statistics["deviation"]) == ([0.0] * 3, [1.0] * 3)


BEFORE_5_4 = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
DENSE = {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}


def with_modules(folder, pooling, *more):
    """Make the folder of an encoder one of sentence-transformers."""
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
        *more,
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("pooling", "more", "said"),
    [
        (
            {**BEFORE_5_4, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
            [],
            "1_Pooling/config.json: pooling_mode_cls_token is True, and only sentence encoders that take the mean",
        ),
        ({**BEFORE_5_4, "pooling_mode_max_tokens": True}, [], "pooling_mode_max_tokens is True"),
        ({"embedding_dimension": 16, "pooling_mode": "lasttoken"}, [], "pooling_mode is 'lasttoken'"),
        ({"embedding_dimension": 16, "pooling_mode": ["cls", "mean"]}, [], "pooling_mode is ['cls', 'mean']"),
        (
            BEFORE_5_4,
            [DENSE],
            "modules.json: 2_Dense is a module Dense, and only sentence encoders that end in Pooling and",
        ),
    ],
)
def test_a_sentence_encoder_that_takes_no_mean_is_refused(copied, pooling, more, said):
    assert said in refusal(with_modules(copied("bert_vectors"), pooling, *more))


@pytest.mark.parametrize("pooling", [BEFORE_5_4, {"embedding_dimension": 16, "pooling_mode": "mean"}])
def test_a_sentence_encoder_that_takes_the_mean_is_imported(copied, tmp_path, pooling):
    normalise = {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}
    import_model(with_modules(copied("bert_vectors"), pooling, normalise), tmp_path / "run", log=lambda line: None)
    assert run.load(tmp_path / "run").config.task == "sentence_embedding"


@pytest.mark.parametrize(
    ("name", "reading", "limit", "length"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 7, "do_lower_case": False}, 12, 7),
        ("sentence_roberta_config.json", {"max_seq_length": 7}, 12, 7),
        ("sentence_bert_config.json", {"max_seq_length": 99}, 12, 20),
        ("sentence_bert_config.json", {"max_seq_length": None}, 12, 12),
        (None, {}, 12, 12),
        (None, {}, 10**30, 20),
    ],
)
def test_a_sentence_encoder_reads_as_many_tokens_as_its_folder_says(copied, tmp_path, name, reading, limit, length):
    folder = copied("bert_vectors")
    edit(folder / "tokenizer_config.json", model_max_length=limit)
    if name is not None:
        (folder / name).write_text(json.dumps(reading), encoding="utf-8")
    import_model(folder, tmp_path / "run", log=lambda line: None)
    own = run.load(tmp_path / "run")
    assert own.config.model.max_length == length
    short, long = (" ".join(["cat", "sat"] * count) for count in (length, 2 * length))
    assert torch.allclose(*own.sentence_encoder.encode([short, long]), atol=1e-5)


@pytest.mark.parametrize("lower", [False, True])
def test_a_sentence_encoder_reads_lower_case_if_its_folder_says_so(copied, tmp_path, lower):
    folder = copied("bert_vectors")
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    reading = {"max_seq_length": 12, "do_lower_case": lower}
    (folder / "sentence_bert_config.json").write_text(json.dumps(reading), encoding="utf-8")
    import_model(folder, tmp_path / "run", log=lambda line: None)
    one, another = run.load(tmp_path / "run").sentence_encoder.encode(["The Cat sat", "the cat sat"])
    assert torch.allclose(one, another, atol=1e-5) is lower


def test_weights_that_are_pickled_alone_are_not_read(copied):
    folder = copied("bert")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "pytorch_model.bin is not read, since it can hold code: save the model" in refusal(folder)
    (folder / "pytorch_model.bin").unlink()
    assert "has no model.safetensors: save the model" in refusal(folder)


def test_files_that_are_missing_or_damaged_are_named(copied, tmp_path):
    folder = copied("bert")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert "tokenizer.json holds no tokenizer" in refusal(folder)
    (folder / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in refusal(folder)
    (folder / "config.json").write_text("{", encoding="utf-8")
    assert "config.json cannot be read" in refusal(folder)
    (folder / "config.json").write_text("[]", encoding="utf-8")
    assert "config.json holds no JSON object" in refusal(folder)
    (folder / "config.json").unlink()
    assert "has no config.json" in refusal(folder)
    with pytest.raises(DataError, match="nowhere is not a folder"):
        import_model(tmp_path / "nowhere", tmp_path / "run")


def test_weights_cut_off_are_refused(copied):
    folder = copied("gpt2")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:100])
    assert "is not a complete safetensors file" in refusal(folder)


def test_an_index_that_leads_outside_of_the_folder_is_refused(copied):
    folder = copied("gpt2")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"wte": "../other/model.safetensors"}}), encoding="utf-8"
    )
    assert "names ../other/model.safetensors, which is not in the folder" in refusal(folder)


def test_weights_in_several_files_and_in_narrow_numbers_are_read(copied, pair, tmp_path):
    folder = copied("gpt2")
    tensors = {name: tensor.bfloat16() for name, tensor in load_file(folder / "model.safetensors").items()}
    names = sorted(tensors)
    parts = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, own in parts.items():
        save_file({name: tensors[name] for name in own}, folder / file)
    index = {"weight_map": {name: file for file, own in parts.items() for name in own}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (folder / "model.safetensors").unlink()
    import_model(folder, tmp_path / "run", log=lambda line: None)
    ours = load_file(tmp_path / "run" / "model.safetensors")["decoder.final_norm.weight"]
    assert ours.dtype == torch.float32
    assert torch.equal(ours, tensors["transformer.ln_f.weight"].float())


def test_early_names_and_a_bare_model_s_are_read(copied, pair, tmp_path):
    folder = copied("bert")
    tensors = load_file(folder / "model.safetensors")
    early = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    assert early.keys() != tensors.keys()
    save_file({name.removeprefix("bert."): tensor for name, tensor in early.items()}, folder / "model.safetensors")
    import_model(folder, tmp_path / "run", log=lambda line: None)
    ours, expected = (load_file(one / "model.safetensors") for one in (tmp_path / "run", pair("bert").run.folder))
    assert all(torch.equal(ours[name], expected[name]) for name in expected)


def test_the_search_is_that_of_the_folder(copied, tmp_path):
    folder = copied("marian", num_beams=6, length_penalty=0.5)
    (folder / "generation_config.json").write_text('{"num_beams": 3}', encoding="utf-8")
    import_model(folder, tmp_path / "run", log=lambda line: None)
    found = run.load(tmp_path / "run").config.generation
    assert (found.beam_size, found.length_penalty) == (3, 0.5)


def test_a_run_that_is_there_is_left_alone(copied, tmp_path):
    folder = copied("gpt2")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match="is not empty: give another --out"):
        import_model(folder, tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes"]


def test_no_code_of_a_folder_is_run(copied, tmp_path):
    folder = copied("gpt2", auto_map={"AutoModelForCausalLM": "evil.Model"}, trust_remote_code=True)
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    import_model(folder, tmp_path / "run", log=lambda line: None)
    assert not (tmp_path / "ran").exists()
