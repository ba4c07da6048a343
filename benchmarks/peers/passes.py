"""Timed passes in any training loop: a hook on the optimizer counts updates, answers the driver and waits for it.

So a library's own trainer is timed unchanged, with all of its work around a step.
"""

from typing import Any

from devices import memory, wait
from serve import Clock, Driver
from torch.optim.optimizer import register_optimizer_step_post_hook


class Passes:
    """Passes that the driver requests, each by {"updates": N} and other fields for the loop."""

    request: dict[str, Any]

    def __init__(self, driver: Driver) -> None:
        self.driver, self.requests, self.tokens = driver, driver.requests(), 0
        register_optimizer_step_post_hook(self._after_update)

    def begin(self) -> None:
        """Wait for the next request and start the clock. Exits if there are no more requests."""
        request = next(self.requests, None)
        if request is None:
            raise SystemExit
        self.request, self.updates, self.tokens = request, 0, 0
        self.clock = Clock()

    def trained_on(self, tokens: int) -> None:
        """Count the real target tokens of the current batch."""
        self.tokens += tokens

    def _after_update(self, *optimizer_and_arguments: Any) -> None:
        self.updates += 1
        if self.updates == self.request["updates"]:
            wait()
            self.driver.answer(tokens=self.tokens, **self.clock.read(), **memory())
            self.begin()
