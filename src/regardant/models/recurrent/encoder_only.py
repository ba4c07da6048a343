"""A recurrent encoder of one input, in place of a Transformer encoder."""

from typing import Literal

from regardant.layers.dropout import share_key
from regardant.layers.recurrent import Cell
from regardant.models.base import EncoderConfig
from regardant.models.encoder_only import EncoderOnly
from regardant.models.heads import HeadBuilder
from regardant.models.recurrent.encoder import RecurrentStackConfig
from regardant.models.representations import InputShape, RepresentationBuilder
from regardant.positions.none import NoPositions


class RecurrentEncoderConfig(RecurrentStackConfig, EncoderConfig):
    """Recurrent layers over the elements: a bidirectional LSTM by default."""

    kind: Literal["recurrent"] = "recurrent"

    cell: Cell = "lstm"
    """The kind of recurrence."""

    def build(self, representation: RepresentationBuilder, head: HeadBuilder) -> EncoderOnly:
        answers = head(self.hidden_size)
        vector = answers.single_vector
        if vector is not None and answers.pooling != "last" and not self.bidirectional:
            raise ValueError(
                f"a unidirectional encoder has read no other element at {vector}: set bidirectional=true, or "
                "choose a head without a class token (such as one of pooling last)"
            )
        inputs = InputShape(
            self.embedding_size, NoPositions(), dropout=self.dropout, class_token=answers.reads_class_token
        )
        encoder = self.build_encoder()
        model = EncoderOnly(self, representation(inputs), encoder, answers)
        if not model.reads_order:
            raise ValueError(
                f"a recurrent network reads elements in order, and a {model.input.unit} has none: choose another model "
                "(encoder_only, or bag)"
            )
        model.dropout_key = share_key(model)
        return model
