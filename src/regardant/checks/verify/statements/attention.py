"""Statements about attention: its symmetries, its weights, its heads, its masks."""

from typing import Any

import torch
from torch import Tensor, nn

from regardant.attention import EVERYTHING, AttentionConfig, ScaledDotProduct, ScaledDotProductConfig
from regardant.attention.additive import Additive
from regardant.attention.top_k import TopKConfig
from regardant.checks.verify import attention, counts, layers, retrieval, shapes, worked_example
from regardant.checks.verify.attention import largest
from regardant.checks.verify.check import COURSE, MISSAOUI, PITIE, WALKTHROUGH, WANG, Claim
from regardant.checks.verify.layers import matrices, parameters, self_attention
from regardant.checks.verify.mechanisms import exactly, ours, weights
from regardant.layers.multi_head import HeadShape, SelfAttention
from regardant.positions.none import NoPositions

EQUIVARIANT = Claim(
    "E-02",
    "Self-attention and the order of words",
    MISSAOUI,
    lecture="self-attention is permutation invariant",
    true={},
    verdict="wrong",
    note="Self-attention is equivariant: its outputs are permuted like its inputs. It is invariant where keys and "
    "values alone are permuted together, and after pooling.",
).shown_by(attention.shuffled)


@Claim(
    "E-03",
    "The order of indices of a weight",
    MISSAOUI,
    lecture="a_nm in one formula, a_mn in the next",
    true={"scores[i, j] less q_i · k_j / √d": "<1e-12", "sums of rows": "1.000000 1.000000 1.000000"},
    verdict="partly",
    note="One order throughout: rows are queries, columns are keys, and each row sums to one.",
).measured
def order_of_indices() -> dict[str, Any]:
    q, k = torch.randn(1, 1, 3, 4, dtype=torch.float64), torch.randn(1, 1, 5, 4, dtype=torch.float64)
    mechanism = ScaledDotProduct(4)
    by_hand = exactly([[float(q[0, 0, i] @ k[0, 0, j]) / 2 for j in range(5)] for i in range(3)])
    return {
        "scores[i, j] less q_i · k_j / √d": largest(mechanism.scores(q, k)[0, 0] - by_hand),
        "sums of rows": mechanism.weights(q, k)[0, 0].sum(-1),
    }


@Claim(
    "E-04",
    "The order of query, key and value",
    PITIE,
    lecture="Attention(X W_V, X W_Q, X W_K); s_ij = q_j · k_i and s_ij = q_i · k_j",
    true={"in the lecture's order, less in the right one": ">0.1"},
    verdict="wrong",
    note="Attention(X W_Q, X W_K, X W_V), s_ij = q_i · k_j, with a summation index of its own.",
).measured
def order_of_arguments() -> dict[str, Tensor]:
    q, k, v = torch.randn(3, 4, 4, dtype=torch.float64)
    return {"in the lecture's order, less in the right one": largest(ours(v, q, k) - ours(q, k, v))}


WHOLE_SOFTMAX = Claim(
    "E-08",
    "The softmax of the NumPy example",
    PITIE,
    lecture="divides by the sum over all entries",
    true={},
    verdict="partly",
    note="Right for one vector; in a matrix each row must be divided by its own sum. `array` and `dot` lack `np.`, the "
    "maximum is not subtracted, and no seed is set.",
).shown_by(attention.numpy_example, "sums of weights, all four words", "the same by the lecture's softmax")


@Claim(
    "E-09",
    "Heads are concatenated, and mixed",
    PITIE,
    lecture="multi-head attention simply concatenates",
    true={"weights of queries, keys and values": "786432", "of the matrix that mixes the heads": "262144"},
    verdict="wrong",
    note="An output matrix W_O mixes the concatenated heads. Keras has it; the code leaves ff_dim and dropout "
    "undefined. d = 512, 8 heads.",
).measured
def output_matrix() -> dict[str, int]:
    layer = self_attention(HeadShape(512, 8, 8, 64, 64))
    return {
        "weights of queries, keys and values": matrices(layer.query_key_value),
        "of the matrix that mixes the heads": matrices(layer.output),
    }


@Claim(
    "E-11",
    "Top-k attention in Transformers",
    COURSE,
    lecture="most Transformer architectures use some form of top-k",
    true={"keys of 32 with a weight, standard": "32", "with top-4": "4"},
    verdict="wrong",
    note="Standard attention is dense: each key has a weight above zero. Top-k is a variant (Gupta et al. 2021, "
    "https://arxiv.org/abs/2106.06899).",
).measured
def dense_weights() -> dict[str, int]:
    q, k = torch.randn(1, 16), torch.randn(32, 16)

    def used(config: AttentionConfig) -> int:
        return int((weights(config, q, k) > 0).sum())

    return {
        "keys of 32 with a weight, standard": used(ScaledDotProductConfig()),
        "with top-4": used(TopKConfig(k=4)),
    }


SHUFFLED = Claim(
    "E-13",
    "Outputs of shuffled inputs",
    COURSE,
    lecture="are identical",
    true={},
    verdict="wrong",
    note="They are the same vectors in the shuffled order.",
).shown_by(
    attention.shuffled,
    "less the attention of words in order",
    "attention of shuffled words, less shuffled attention",
)


@Claim(
    "E-15",
    "Sizes that must agree",
    COURSE,
    lecture="the key uses Ω_q; W_Q is d × d_v; unequal d_v and d_k need another attention; √ of the number of rows",
    true={
        "numbers of an output, d_k = 4 and d_v = 6": "6",
        "scores are divided by, d_k = 4 and 9 keys": "2.000000",
        "queries of 4 numbers, keys of 3": "refused",
    },
    verdict="wrong",
    note="The key uses Ω_k and W_Q is d × d_k. d_v is free; d_q must equal d_k, or be projected. Scores are divided by "
    "√d_k, which counts rows only where tokens are columns. The additive score is w_vᵀ tanh(W_q q + W_k k).",
).measured
def sizes() -> dict[str, Any]:
    q, k, v = (torch.randn(1, 1, 9, size, dtype=torch.float64) for size in (4, 4, 6))
    mechanism = ScaledDotProduct(4)
    try:
        refused = str(mechanism.scores(q, k[..., :3]).shape)
    except (RuntimeError, TypeError, ValueError):
        refused = "refused"
    return {
        "numbers of an output, d_k = 4 and d_v = 6": mechanism(q, k, v).shape[-1],
        "scores are divided by, d_k = 4 and 9 keys": ((q @ k.mT) / mechanism.scores(q, k)).mean(),
        "queries of 4 numbers, keys of 3": refused,
    }


WORDS = Claim(
    "E-18",
    "Words of the English sentence",
    COURSE,
    lecture={"words": "14"},
    true={},
    verdict="wrong",
    note="Twelve words. Fourteen tokens with the full stop and the end of sentence, as in Bahdanau's figure 3.",
).shown_by(shapes.sentence_words)

UNDER_WORDS = Claim(
    "E-19",
    "Weights drawn under the wrong words",
    COURSE,
    lecture={"place of cat": "0", "words of the French sentence": "6"},
    true={},
    verdict="wrong",
    note="The weights belong to the six English words, where cat is second. The French sentence has seven.",
).shown_by(retrieval.weights_under_words, "place of cat", "words of the French sentence")

MIXTURE = Claim(
    "E-20",
    "Similarities as mixture weights",
    COURSE,
    lecture={"sums": "1 1"},
    true={},
    verdict="wrong",
    note="The similarities sum to 1.5 and 2.25: divide by the sum or take a softmax. The formula also has a plus sign "
    "twice.",
).shown_by(retrieval.similarities_as_weights, "sums", "library, softmax", "students, softmax")

SOFTMAX = Claim(
    "E-21",
    "A softmax of four numbers",
    COURSE,
    lecture={"weights": "0.58 0.10 0.04 0.28"},
    true={},
    verdict="wrong",
    note="The softmax of 2.1, 0.3, -0.5 and 1.8.",
).shown_by(attention.softmax, "weights")

MOSTLY_ANIMAL = Claim(
    "E-22",
    "What the cat query retrieves",
    COURSE,
    lecture="0.223 0.135 0.237 0.574: 22% animal features, mostly animal",
    true={},
    verdict="wrong",
    note="0.2213, 0.1333, 0.2334 and 0.5756. Definiteness is largest and animal third. The numbers sum to 1.16: they "
    "are no percentages.",
).shown_by(worked_example.temperatures, "output by size at √4", "sum of that output", "animal is the largest below")

ACTION = Claim(
    "E-23",
    "What the action query retrieves",
    COURSE,
    lecture="two queries of one name; retrieves action semantics",
    true={},
    verdict="wrong",
    note="“sat” gets most attention, but action is third in the output. The queries end in .1 and in .2.",
).shown_by(worked_example.action_in_prose, "most attention", "output by size")

HEADS = Claim(
    "E-24",
    "Parameters and roles of heads",
    COURSE,
    lecture="Q = K = V is one matrix; heads are parameter-efficient, averaged, and learn different patterns: a theorem",
    true={},
    verdict="wrong",
    note="The code shown has no matrix. The count does not depend on the number of heads, which are concatenated and "
    "mixed by W_O. They are trained jointly, and nothing forces them to differ: `make experiments "
    "EXPERIMENT=equal_heads`.",
).shown_by(layers.heads)


@Claim(
    "E-28",
    "Code of the layers",
    COURSE,
    lecture="returns before the heads are joined; has no projections; single layers are named after stacks",
    true={"this project's layer less torch.nn.MultiheadAttention": "<1e-5", "shape of its output": "2 5 64"},
    verdict="wrong",
    note="A complete layer: projections of queries, keys and values, heads, concatenation, W_O. A layer and the stack "
    "of layers have names of their own.",
).measured
def complete_layer() -> dict[str, Any]:
    layer = SelfAttention(
        HeadShape(64, 4, 4, 16, 16), ScaledDotProductConfig(), NoPositions(), "separate", causal=False
    ).eval()
    twin = nn.MultiheadAttention(64, 4, batch_first=True).eval()
    assert isinstance(layer.query_key_value, nn.Linear) and isinstance(layer.output, nn.Linear)
    twin.in_proj_weight.copy_(layer.query_key_value.weight)
    twin.in_proj_bias.copy_(layer.query_key_value.bias)
    twin.out_proj.load_state_dict(layer.output.state_dict())
    x = torch.randn(2, 5, 64)
    mixed = layer(x, EVERYTHING)
    return {
        "this project's layer less torch.nn.MultiheadAttention": largest(mixed - twin(x, x, x)[0]),
        "shape of its output": list(mixed.shape),
    }


FILLED = Claim(
    "E-30",
    "A padding mask filled with -1e9",
    COURSE,
    lecture="(tokens == PAD) is used as it is; masked positions get 0",
    true={},
    verdict="partly",
    note="The mask [B, L] must be broadcast to [B, 1, 1, L]. Where every key is masked, -1e9 gives equal weights and "
    "-inf none; float16 has no -1e9.",
).shown_by(attention.masked)

NORMALISER = Claim(
    "E-31",
    "Linear attention without a normaliser",
    COURSE,
    lecture="φ(Q) (φ(K)ᵀ V)",
    true={},
    verdict="wrong",
    note="Divide by φ(Q) (φ(K)ᵀ 1). The cost is n d r for r features.",
).shown_by(attention.linear)

DICTIONARY = Claim(
    "E-33",
    "What attention can implement",
    COURSE,
    lecture="any dictionary lookup; any sequence function; any sparse connectivity",
    true={},
    verdict="partly",
    note="A lookup needs a unique best key. Universal approximation (Yun et al. 2020, "
    "https://arxiv.org/abs/1912.10077) is of continuous functions on a compact domain, permutation-equivariant ones "
    "without positions.",
).shown_by(attention.dictionary)


@Claim(
    "E-46",
    "Symbols for lengths and for steps",
    WANG,
    lecture="L and n are mixed, and so are t and i",
    true={"queries, keys and outputs": "3 5 3"},
    verdict="partly",
    note="One symbol for each: target positions t, source positions i. Lengths of queries and keys may differ.",
).measured
def two_lengths() -> dict[str, list[int]]:
    q, k, v = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 4)
    return {"queries, keys and outputs": [len(q), len(k), len(ours(q, k, v))]}


WALK_TABLE = Claim(
    "E-48",
    "Q, K and V as the sentence itself",
    WALKTHROUGH,
    lecture="Q, K and V are the input sentence; each row of the table sums to 1",
    true={},
    verdict="wrong",
    note="The table cannot come from Q = K = X, whose scores are symmetric. Two of its rows sum to 1.001.",
).shown_by(attention.symmetric_scores)

WALK_MASK = Claim(
    "E-49",
    "A mask over the weights",
    WALKTHROUGH,
    lecture="the mask is applied over the attention weights; the masked table is the unmasked one",
    true={},
    verdict="wrong",
    note="Mask the scores before the softmax. Every row of the lower triangle then sums to one.",
).shown_by(attention.masked_table)


@Claim(
    "E-57",
    "Parameters of attention",
    PITIE,
    lecture="attention requires fewer parameters; it has no trainable parameters",
    true={
        "of a dot product, 8 heads of 64": "0",
        "of an additive score": "512",
        "of a layer: self-attention, convolution, RNN": "98304 163840 36864",
    },
    verdict="partly",
    note="The dot product alone has none; an additive score has, and so have the projections around both. A recurrence "
    "can be smaller.",
).measured
def learned() -> dict[str, Any]:
    return {
        "of a dot product, 8 heads of 64": parameters(ScaledDotProduct(64)),
        "of an additive score": parameters(Additive(8, 64)),
        "of a layer: self-attention, convolution, RNN": counts.costs.found(ours)[
            "of self-attention, convolution and RNN"
        ],
    }


STATEMENTS = (
    EQUIVARIANT,
    order_of_indices,
    order_of_arguments,
    WHOLE_SOFTMAX,
    output_matrix,
    dense_weights,
    SHUFFLED,
    sizes,
    WORDS,
    UNDER_WORDS,
    MIXTURE,
    SOFTMAX,
    MOSTLY_ANIMAL,
    ACTION,
    HEADS,
    complete_layer,
    FILLED,
    NORMALISER,
    DICTIONARY,
    two_lengths,
    WALK_TABLE,
    WALK_MASK,
    learned,
)
