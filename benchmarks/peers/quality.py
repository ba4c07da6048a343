"""Marks in any training loop: when the driver's minutes are over, the clock stops and the test set is translated.

A hook on the optimizer reads the clock, so a library's own trainer runs unchanged.
"""

import time
from collections.abc import Callable
from typing import Any

from serve import Driver
from torch.optim.optimizer import register_optimizer_step_post_hook

Translate = Callable[[], list[list[int]]]
"""Function that returns the ids of the translation of every source, without SOS and EOS."""


class Marks:
    """Hook that answers requests {"minutes": N} with the translations after N minutes of training in total."""

    def __init__(self, driver: Driver, translate: Translate) -> None:
        self.driver, self.requests, self.translate = driver, driver.requests(), translate
        self.trained, self.updates = 0.0, 0
        register_optimizer_step_post_hook(self._after_update)

    def begin(self) -> None:
        """Wait for the next request. Exits if there are no more requests."""
        request = next(self.requests, None)
        if request is None:
            raise SystemExit
        self.until, self.resumed = 60 * request["minutes"], time.perf_counter()

    def _after_update(self, *optimizer_and_arguments: Any) -> None:
        self.updates += 1
        trained = self.trained + time.perf_counter() - self.resumed
        if trained >= self.until:
            self.trained = trained
            self.driver.answer(targets=self.translate(), seconds=trained, updates=self.updates)
            self.begin()
