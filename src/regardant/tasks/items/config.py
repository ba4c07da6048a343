"""The part of a recipe that all tasks over items of one kind share."""

from regardant.modalities import ModalityConfig, TextModalityConfig
from regardant.models import EncoderConfig
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import HeadConfig
from regardant.tasks.base import TaskConfig


class ItemsConfig(TaskConfig):
    """Configuration of a task whose model reads one item at a time and answers by a head."""

    input: ModalityConfig = TextModalityConfig()
    """The kind of item."""

    model: EncoderConfig = EncoderOnlyConfig()
    """The model that reads an item."""

    head: HeadConfig
    """The head that answers."""

    @property
    def modality(self) -> ModalityConfig:
        return self.input
