"""Tiny random models of transformers, in folders as their authors publish them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers as hf
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

WORDS = ["the", "film", "cat", "sat", "on", "a", "mat", "##s", "##b", "dog", "old", ".", ","]
TEXTS = ["the film sat on a mat .", "the old dogs , the cat", "a cat"]
SIZE = 40
"""Words of a vocabulary: some have no piece, as in checkpoints that round their size up."""


def word_pieces() -> transformers.PreTrainedTokenizerFast:
    """Return a tokenizer like BERT's; special tokens stand in the midst of words."""
    pieces = [*WORDS[:4], "[PAD]", *WORDS[4:8], "[UNK]", "[CLS]", *WORDS[8:], "[SEP]", "[MASK]"]
    ids = {piece: number for number, piece in enumerate(pieces)}
    backend = hf.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    special = [(name, ids[name]) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=special
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def byte_pieces(*, special: dict[str, str], template: str | None = None) -> transformers.PreTrainedTokenizerFast:
    """Return a byte-level tokenizer like GPT-2's, with special tokens by their roles at the end."""
    backend = hf.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted({character for text in TEXTS for character in text.replace(" ", "\u0120")})
    trainer = trainers.BpeTrainer(vocab_size=30, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(TEXTS, trainer)
    backend.add_special_tokens(list(dict.fromkeys(special.values())))
    if template is not None:
        names = [(name, backend.token_to_id(name)) for name in template.split() if name != "$A"]
        backend.post_processor = processors.TemplateProcessing(single=template, special_tokens=names)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def sentence_pieces(*special: str, roles: dict[str, str], template: str) -> transformers.PreTrainedTokenizerFast:
    """Return a unigram tokenizer like SentencePiece's, special tokens first."""
    pieces = sorted({f"\u2581{word}" for text in TEXTS for word in text.split()} | set("".join(TEXTS)) - {" "})
    vocabulary = [(name, 0.0) for name in special] + [
        (piece, -float(len(pieces) - n)) for n, piece in enumerate(pieces)
    ]
    backend = hf.Tokenizer(models.Unigram([*vocabulary, ("\u2581", -30.0)], unk_id=special.index(roles["unk_token"])))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.add_special_tokens(list(special))
    names = [(name, backend.token_to_id(name)) for name in template.split() if name != "$A"]
    backend.post_processor = processors.TemplateProcessing(single=template, special_tokens=names)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **roles)


ENCODER = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "hidden_act": "gelu_new",
    "layer_norm_eps": 1e-3,
}
TRANSLATOR = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
END = {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
ROBERTA = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}


def _bert(architecture: str, **fields: Any) -> tuple[Any, Any]:
    tokenizer = word_pieces()
    config = transformers.BertConfig(vocab_size=SIZE, pad_token_id=tokenizer.pad_token_id, **ENCODER, **fields)
    return getattr(transformers, architecture)(config), tokenizer


def _roberta() -> tuple[Any, Any]:
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *sorted(set("".join(TEXTS)) - {" "}), "\u0120", "<mask>"]
    backend = hf.Tokenizer(models.BPE({piece: n for n, piece in enumerate(pieces)}, [], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    backend.add_special_tokens([hf.AddedToken("<mask>", lstrip=True, special=True)])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, **{**ROBERTA, "mask_token": hf.AddedToken("<mask>", lstrip=True, special=True)}
    )
    return transformers.RobertaForMaskedLM(transformers.RobertaConfig(vocab_size=SIZE, **ENCODER)), tokenizer


def _gpt2() -> tuple[Any, Any]:
    tokenizer = byte_pieces(special=END)
    end = tokenizer.eos_token_id
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=4, n_positions=32, bos_token_id=end, eos_token_id=end
    )
    return transformers.GPT2LMHeadModel(config), tokenizer


LLAMA = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def _llama(tokenizer: Any = None, **fields: Any) -> tuple[Any, Any]:
    tokenizer = tokenizer or byte_pieces(special=LLAMA, template="<s> $A")
    config = transformers.LlamaConfig(
        vocab_size=SIZE,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=27,
        rms_norm_eps=1e-3,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **{"max_position_embeddings": 32, **fields},
    )
    return transformers.LlamaForCausalLM(config), tokenizer


def _marian() -> tuple[Any, Any]:
    tokenizer = sentence_pieces("</s>", "<unk>", "<pad>", roles=TRANSLATOR, template="$A </s>")
    config = transformers.MarianConfig(
        vocab_size=SIZE,
        d_model=16,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        activation_function="swish",
        max_position_embeddings=32,
        scale_embedding=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=None,
    )
    model = transformers.MarianMTModel(config)
    with torch.no_grad():
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, tokenizer.eos_token_id] = -2  # so that texts are not empty
    return model, tokenizer


def _t5() -> tuple[Any, Any]:
    tokenizer = sentence_pieces("<pad>", "</s>", "<unk>", roles=TRANSLATOR, template="$A </s>")
    config = transformers.T5Config(
        vocab_size=SIZE,
        d_model=16,
        d_kv=6,
        d_ff=24,
        num_layers=2,
        num_decoder_layers=1,
        num_heads=2,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=12,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    return transformers.T5ForConditionalGeneration(config), tokenizer


def _vit() -> tuple[Any, Any]:
    fields = {name: value for name, value in ENCODER.items() if name != "max_position_embeddings"}
    labels = {"id2label": {0: "cat", 1: "dog", 2: "bird"}, "label2id": {"cat": 0, "dog": 1, "bird": 2}}
    config = transformers.ViTConfig(image_size=12, patch_size=4, num_channels=3, **fields, **labels)
    size = {"height": 12, "width": 12}
    processor = transformers.ViTImageProcessor(size=size, image_mean=[0.1, 0.2, 0.3], image_std=[0.5, 0.6, 0.7])
    return transformers.ViTForImageClassification(config), processor


TINY: dict[str, Callable[[], tuple[Any, Any]]] = {
    "bert": lambda: _bert("BertForMaskedLM"),
    "bert_classes": lambda: _bert("BertForSequenceClassification", id2label={0: "good", 1: "bad", 2: "dull"}),
    "bert_vectors": lambda: _bert("BertModel"),
    "roberta": _roberta,
    "gpt2": _gpt2,
    "llama": _llama,
    "llama_tied": lambda: _llama(tie_word_embeddings=True),
    "llama_sentence_pieces": lambda: _llama(
        sentence_pieces("<unk>", "<s>", "</s>", roles=LLAMA, template="<s> $A"), max_position_embeddings=48
    ),
    "marian": _marian,
    "t5": _t5,
    "vit": _vit,
}


def save(name: str, folder: Path) -> tuple[Any, Any]:
    """Save a tiny model, none of whose numbers is like another, with its tokenizer or processor; return both."""
    torch.manual_seed(0)
    model, tokenizer = TINY[name]()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # not tables of sinusoids
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def load(name: str, folder: Path) -> tuple[Any, Any]:
    """Return what `save` saved."""
    model, tokenizer = TINY[name]()
    return type(model).from_pretrained(folder).eval(), type(tokenizer).from_pretrained(folder)
