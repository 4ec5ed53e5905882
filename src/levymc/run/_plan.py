"""How a run is cut: burn-in, then chunks of draws."""

from typing import NamedTuple


class Plan(NamedTuple):
    """`chunk` draws a chunk, `thin` steps a draw, after `burn_in` steps."""

    num_chains: int
    num_draws: int
    chunk: int
    thin: int
    burn_in: int

    @property
    def num_chunks(self) -> int:
        return -(-self.num_draws // self.chunk)

    @property
    def num_steps(self) -> int:
        """Of a chain, those of the burn-in among them."""
        return self.burn_in + self.num_draws * self.thin

    def first_step(self, chunk: int) -> int:
        """The number of the first step of a chunk."""
        return self.burn_in + chunk * self.chunk * self.thin

    def draws_in(self, chunk: int) -> int:
        """How many draws of a chunk are wanted; the last may be cut."""
        return min(self.chunk, self.num_draws - chunk * self.chunk)
