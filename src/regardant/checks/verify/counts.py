"""Parameters, bytes and multiplications, counted on the project's own models and layers, built on the meta device."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.checks.verify.check import COURSE, MISSAOUI, PITIE, Claim
from regardant.checks.verify.layers import feed_forward, matrices, parameters, self_attention
from regardant.layers.multi_head import HeadShape
from regardant.models import EncoderDecoder, EncoderDecoderConfig, next_token, tokens
from regardant.models.decoder_only import DecoderOnly, DecoderOnlyConfig
from regardant.models.encoder_only import EncoderOnly, EncoderOnlyConfig
from regardant.models.heads.sequence_class import SequenceClass, SequenceClassConfig
from regardant.positions.learned import LearnedConfig


def transformer(preset: str, vocab_size: int, tied: str = "all") -> EncoderDecoder:
    """Return an encoder-decoder Transformer of the project."""
    config = EncoderDecoderConfig.model_validate({"preset": preset, "tie_embeddings": tied})
    with torch.device("meta"):
        return config.build(tokens(vocab_size), tokens(vocab_size), next_token(vocab_size))


def gpt(vocab_size: int, **fields: Any) -> DecoderOnly:
    """Return a decoder-only Transformer of the project, with learned positions and tied embeddings."""
    config = DecoderOnlyConfig.model_validate(fields)
    with torch.device("meta"):
        return config.build(tokens(vocab_size), next_token(vocab_size))


def bert_base(num_classes: int) -> EncoderOnly:
    """Return the encoder of BERT-base with its pooler and a classification head. It has no segment embeddings: the
    project adds the vector of the first segment to the positions."""
    config = EncoderOnlyConfig(
        d_model=768,
        num_heads=12,
        d_ff=3072,
        num_layers=12,
        max_length=512,
        norm="post",
        positions=LearnedConfig(),
        embedding_norm=True,
        scale_embeddings=False,
    )
    head = SequenceClassConfig(pooling="first", transform=True)
    with torch.device("meta"):
        return config.build(tokens(30_522), lambda d_model: head.build(d_model, num_classes))


def multiplications(compute: Callable[[], object]) -> int:
    """Count the multiply-adds of all matrix products in a computation."""
    with FlopCounterMode(display=False) as counter:
        compute()
    return int(counter.get_total_flops()) // 2


@Claim(
    "N-30",
    "Parameters of the base model",
    COURSE,
    lecture=None,
    true={
        "all embeddings tied": "63082496",
        "target and output tied": "82026496",
        "none tied": "100970496",
        "an encoder layer": "3152384",
        "a decoder layer": "4204032",
        "both stacks": "44138496",
        "an embedding": "18944000",
        "all tied, without biases": "63014912",
    },
    verdict="unstated",
    note="With a vocabulary of 37,000. The paper says 65 million. The lecture's max_seq_len is not in the paper, whose "
    "sinusoids have no maximum length.",
).measured
def base() -> dict[str, int]:
    model = transformer("base", 37_000)
    stacks = parameters(model.encoder) + parameters(model.decoder)
    biases = sum(layer.bias.numel() for layer in model.modules() if isinstance(layer, nn.Linear))
    return {
        "all embeddings tied": parameters(model),
        "target and output tied": parameters(transformer("base", 37_000, "target")),
        "none tied": parameters(transformer("base", 37_000, "none")),
        "an encoder layer": parameters(model.get_submodule("encoder.layers.0")),
        "a decoder layer": parameters(model.get_submodule("decoder.layers.0")),
        "both stacks": stacks,
        "an embedding": parameters(model) - stacks,
        "all tied, without biases": parameters(model) - biases,
    }


@Claim(
    "N-31",
    "Parameters of the big model",
    COURSE,
    lecture=None,
    true={"all tied, 37,000 words": "214245376", "both stacks": "176357376", "32,000 words": "209125376"},
    verdict="unstated",
    note="The paper says 213 million. The lecture's dropout of .3 is that of English-German; English-French had .1.",
).measured
def big() -> dict[str, int]:
    model = transformer("big", 37_000)
    return {
        "all tied, 37,000 words": parameters(model),
        "both stacks": parameters(model.encoder) + parameters(model.decoder),
        "32,000 words": parameters(transformer("big", 32_000)),
    }


@Claim(
    "N-32",
    "Parameters of GPT-3",
    COURSE,
    lecture={"parameters": "175B", "d_model, layers, heads, d_ff": "12288 96 96 49152"},
    true={
        "parameters": "174604259328",
        "of a layer": "1812099072",
        "12 · layers · d²": "173946175488",
        "numbers of a head": "128",
    },
    verdict="right",
    note="Counted on the project's own model, with a vocabulary of 50,257 and 2,048 positions, which the lecture does "
    "not give. The closed form, 12 · layers · d², leaves out embeddings, biases and norms.",
).measured
def gpt_3() -> dict[str, int]:
    model = gpt(50_257, preset="gpt3")
    config, layer = model.config, model.get_submodule("decoder.layers.0")
    return {
        "parameters": parameters(model),
        "of a layer": parameters(layer) - parameters(model.get_submodule("decoder.positions")),  # all layers share them
        "12 · layers · d²": 12 * config.num_layers * config.d_model**2,
        "numbers of a head": config.heads.key_size,
    }


@Claim(
    "N-33",
    "Parameters of BERT, GPT-2, a lab model",
    COURSE,
    lecture={"BERT-base": "110M", "the lab's model": "4 layers"},
    true={
        "BERT-base": "109482240",
        "without its pooler": "108891648",
        "a head of two classes": "1538",
        "4 layers, 65 characters; d 128, 256, 384; length 128, 256, 256": "818048 3241728 7221888",
        "GPT-2 small": "124439808",
    },
    verdict="right",
    note="Counted on the project's own models. BERT's table of two segments is added by hand: the project has none.",
).measured
def smaller_models() -> dict[str, Any]:
    bert = bert_base(2)
    assert isinstance(bert.head, SequenceClass)
    segments = 2 * bert.config.d_model
    encoder = parameters(bert) - parameters(bert.head) + segments
    return {
        "BERT-base": encoder + parameters(bert.head.transform),
        "without its pooler": encoder,
        "a head of two classes": parameters(bert.head.output),
        "4 layers, 65 characters; d 128, 256, 384; length 128, 256, 256": [
            parameters(gpt(65, num_layers=4, d_model=d, d_ff=4 * d, max_length=length))
            for d, length in ((128, 128), (256, 256), (384, 256))
        ],
        "GPT-2 small": parameters(gpt(50_257, preset="gpt2")),
    }


@Claim(
    "N-34",
    "Bytes of attention weights",
    COURSE,
    lecture={"a layer": "~33 MB", "12 layers": "~400 MB"},
    true={"a layer": "33554432", "12 layers": "402653184", "in MiB": "32 384"},
    verdict="rounded",
    note="33.55 MB and 402.7 MB for 8 heads and 1,024 tokens in float32: one copy, of one sequence. Training stores "
    "more.",
).measured
def weight_bytes() -> dict[str, Any]:
    q = torch.empty(1, 8, 1024, 64, device="meta")
    layer = ScaledDotProduct(64).weights(q, q).nbytes
    return {"a layer": layer, "12 layers": 12 * layer, "in MiB": [layer >> 20, 12 * layer >> 20]}


@Claim(
    "N-35",
    "Numbers of attention weights",
    COURSE,
    lecture="16K 65K 262K 1M 4M 16M",
    true="16384 65536 262144 1048576 4194304 16777216",
    verdict="partly",
    note="For one head and 128 to 4,096 tokens. All six are rounded down: 65,536 is nearer to 66K, and 16,777,216 to "
    "17M.",
).measured
def weight_counts() -> list[int]:
    return [
        ScaledDotProduct(1).weights(q, q).numel()
        for q in (torch.empty(1, 1, 2**power, 1, device="meta") for power in range(7, 13))
    ]


def _layer_multiplications(length: int, d_model: int) -> tuple[int, int, int]:
    """Return the multiplications of projections, of scores and mix, and of a feed-forward network of 4 d_model."""
    shape = HeadShape(d_model, 8, 8, d_model // 8, d_model // 8)
    attention, network = self_attention(shape), feed_forward(d_model, 4 * d_model)
    mechanism = ScaledDotProduct(shape.key_size)
    x, q = torch.empty(1, length, d_model, device="meta"), torch.empty(1, 8, length, d_model // 8, device="meta")

    def project() -> tuple[Tensor, Tensor]:
        return attention.query_key_value(x), attention.output(x)

    return (
        multiplications(project),
        multiplications(lambda: mechanism.weights(q, q) @ q),
        multiplications(lambda: network(x)),
    )


@Claim(
    "N-36",
    "Multiplications of a layer",
    f"{MISSAOUI}; {COURSE}",
    lecture="attention dominates for N ≫ D, the feed-forward network for D ≫ N",
    true={
        "projections, attention, feed-forward, N = d = 512": "536870912 268435456 1073741824",
        "attention = feed-forward at N / d": "4",
        "attention = all the rest at N / d": "6",
        "attention and feed-forward at N = 2048": "4294967296 4294967296",
    },
    verdict="right",
    note="The orders hide the factors: projections 4 N d², attention 2 N² d, feed-forward 8 N d².",
).measured
def regimes() -> dict[str, Any]:
    d = 512
    counted = {times: _layer_multiplications(times * d, d) for times in (1, 4, 6)}
    return {
        "projections, attention, feed-forward, N = d = 512": counted[1],
        "attention = feed-forward at N / d": next(t for t, (_, mix, network) in counted.items() if mix == network),
        "attention = all the rest at N / d": next(t for t, (rest, mix, net) in counted.items() if mix == net + rest),
        "attention and feed-forward at N = 2048": counted[4][1:],
    }


@Claim(
    "N-37",
    "Costs of four kinds of layer",
    PITIE,
    lecture={
        "parameters of a dense layer": "4194304",
        "multiplications: scores, RNN, convolution, dense": "1048576 4194304 20971520 536870912",
    },
    true={
        "parameters of a dense layer": "536870912",
        "of self-attention, convolution and RNN": "98304 163840 36864",
        "multiplications: scores, RNN, convolution, dense": "1048576 4718592 20971520 536870912",
        "of attention's mix and projections": "1048576 12582912",
    },
    verdict="wrong",
    note="At length 128, d = 512, d_k = d_v = 64, kernel 5. A dense layer has L² · d · d_v weights, not L · d · d_v. "
    "The RNN's d_v² and attention's projections are left out. Convolution and RNN are PyTorch's, the dense layer a "
    "closed form.",
).measured
def costs() -> dict[str, Any]:
    length, d, d_v = 128, 512, 64
    attention = self_attention(HeadShape(d, 1, 1, d_v, d_v)).query_key_value
    with torch.device("meta"):
        convolution, rnn = nn.Conv1d(d, d_v, 5), nn.RNN(d, d_v)
    q, x = torch.empty(1, 1, length, d_v, device="meta"), torch.empty(length, d, device="meta")
    mechanism = ScaledDotProduct(d_v)
    weights = mechanism.weights(q, q)
    dense = (length * d) * (length * d_v)
    return {
        "parameters of a dense layer": dense,
        "of self-attention, convolution and RNN": [matrices(layer) for layer in (attention, convolution, rnn)],
        "multiplications: scores, RNN, convolution, dense": [
            multiplications(lambda: mechanism.weights(q, q)),
            length * matrices(rnn),
            length * matrices(convolution),
            dense,
        ],
        "of attention's mix and projections": [
            multiplications(lambda: weights @ q),
            multiplications(lambda: attention(x)),
        ],
    }


@Claim(
    "N-38",
    "A dense map over tokens, or attention",
    MISSAOUI,
    lecture="O(N² D²) against O(D²)",
    true={"dense": "274877906944", "attention": "1048576", "feed-forward": "2097152"},
    verdict="right",
    note="1,024 tokens of 512 numbers. The dense map is a closed form, (N D)².",
).measured
def dense_map() -> dict[str, int]:
    n, d = 1024, 512
    return {
        "dense": (n * d) ** 2,
        "attention": matrices(self_attention(HeadShape(d, 8, 8, d // 8, d // 8))),
        "feed-forward": matrices(feed_forward(d, 4 * d)),
    }


@Claim(
    "N-63",
    "Multiplications of rectangular scores",
    PITIE,
    lecture="O(L_q L_k d_k)",
    true={"scores": "385", "the mix, d_v = 3": "231"},
    verdict="right",
    note="7 queries, 11 keys, d_k = 5. The mix of values, L_q L_k d_v, is not counted by the lecture.",
).measured
def rectangular() -> dict[str, int]:
    q, k, v = torch.randn(1, 1, 7, 5), torch.randn(1, 1, 11, 5), torch.randn(1, 1, 11, 3)
    mechanism = ScaledDotProduct(5)
    mechanism.kernel = KERNELS["matmul"]
    scores = multiplications(lambda: mechanism.weights(q, k))
    return {"scores": scores, "the mix, d_v = 3": multiplications(lambda: mechanism(q, k, v)) - scores}
