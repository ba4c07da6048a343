"""The encoder-decoder Transformer: reads a source, writes a target.

Vaswani et al. 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762.

Shape legend: B sentences, W beams, S source length, T target length, V target vocabulary, M d_model.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.layers.dropout import share_key
from regardant.models.base import Model, Vectors, widen
from regardant.models.config import EncoderDecoderConfig
from regardant.models.decoder import Decoder, DecoderState
from regardant.models.encoder import Encoder
from regardant.models.heads import Loss, NextToken
from regardant.models.representations.tokens import TokenEmbedding, real_tokens
from regardant.positions import Positions


class EncoderDecoder(Model):
    """Reads all of the source at once and writes the target token by token."""

    def __init__(self, config: EncoderDecoderConfig, source_vocab_size: int, target_vocab_size: int) -> None:
        super().__init__()
        if config.tie_embeddings == "all" and source_vocab_size != target_vocab_size:
            raise ValueError(
                f"tie_embeddings 'all' needs one vocabulary, but the source has {source_vocab_size} words and the "
                f"target {target_vocab_size}: choose 'target'"
            )
        self.config: EncoderDecoderConfig = config
        of_source, of_target = self._positions(causal=False), self._positions(causal=True)
        self.source = self._embedding(source_vocab_size, of_source)
        self.target = self._embedding(target_vocab_size, of_target)
        self.encoder = Encoder(config, of_source)
        self.decoder = Decoder(config, of_target)
        self.head = NextToken(config.d_model, target_vocab_size)
        self._initialise()
        self._tie()
        self.check_lengths()
        self.dropout_key = share_key(self)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T1"],
        label_smoothing: float = 0.0,
        z_loss: float = 0.0,
    ) -> Loss:
        """Teacher forcing: the decoder reads target[:, :-1] (from SOS on) and has to say target[:, 1:] (to EOS)."""
        return self.head.loss(self._decode(source, target[:, :-1]), target[:, 1:], label_smoothing, z_loss)

    def scores(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Logits of the token after each of `target`, which starts with SOS."""
        return self.head.scores(self._decode(source, target))

    def encode(self, source: Int[Tensor, "B S"]) -> Vectors:
        """The memory that the decoder looks at."""
        real, x = real_tokens(source), self.source(source)
        if self.config.memory == "final":
            return Vectors(self.encoder(x, real), real)
        *earlier, last = self.encoder.of_every_layer(x, real)
        return Vectors(last, real, earlier)

    def start(self, memory: Vectors, beam_size: int, max_length: int) -> DecoderState:
        """The state before the first target token."""
        return self.decoder.start(memory, beam_size, max_length)

    def step(self, tokens: Int[Tensor, "B W"], state: DecoderState) -> Float[Tensor, "B W V"]:
        """Logits of the token after the newest one of every beam; `state` is changed in place."""
        widen(state, tokens)
        x = self.target(tokens.reshape(-1, 1), start=state.length)
        return self.head.scores(self.decoder.step(x, state)).view(*tokens.shape, -1)

    def _decode(self, source: Tensor, target: Tensor) -> Tensor:
        return self.decoder(self.target(target), self.encode(source))

    def _positions(self, *, causal: bool) -> Positions:
        config = self.config
        return config.positions.build(
            d_model=config.d_model,
            num_heads=config.num_heads,
            head_size=config.heads.key_size,
            max_length=config.max_length,
            causal=causal,
        )

    def _embedding(self, vocab_size: int, positions: Positions) -> TokenEmbedding:
        config = self.config
        return TokenEmbedding(
            vocab_size,
            config.d_model,
            positions=positions,
            scale=config.scale_embeddings,
            dropout=config.input_dropout,
        )

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv1d):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def _tie(self) -> None:
        if self.config.tie_embeddings != "none":
            self.target.table.weight = self.head.weight
        if self.config.tie_embeddings == "all":
            self.source.table.weight = self.head.weight
