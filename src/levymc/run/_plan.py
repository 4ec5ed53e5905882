"""How a run is cut: burn-in, then chunks of draws, each made in blocks of steps."""

import math
from typing import NamedTuple

CHUNK_BYTES = 64 * 2**20
BLOCK_BYTES = 4 * 2**20  # of random bits: larger blocks were no faster, and leave the cache
LONGEST_BLOCK = 256
FEWEST_CHUNKS = 20  # so that the progress bar moves, and Ctrl-C loses little


class Cut(NamedTuple):
    """`chunk` draws a chunk, `thin` steps a draw, random bits for `block` steps at once.

    A block is of whole draws, and a chunk of whole blocks; or a block is less than a draw.
    """

    thin: int
    chunk: int
    block: int


def cut_run(num_draws: int, thin: int, draw_bytes: int, bit_bytes: int) -> Cut:
    """Chunks few enough for memory and for the bar, of nearly one size.

    Args:
        draw_bytes: what a draw of all chains holds in memory, its minibatches included.
        bit_bytes: what the random bits of a step do.
    """
    # The compiler unrolls a loop over one draw, and rounds otherwise: no chunk is so small unless
    # memory demands it, so that draws do not depend on the number of chunks.
    wanted = max(2, math.ceil(num_draws / FEWEST_CHUNKS))
    most = max(1, min(CHUNK_BYTES // max(draw_bytes, 1), wanted))
    chunk = even_part(num_draws, most)
    steps = max(1, min(LONGEST_BLOCK, BLOCK_BYTES // max(bit_bytes, 1)))
    if steps < thin:
        return Cut(thin, chunk, even_part(thin, steps))
    per_block = even_part(chunk, min(chunk, steps // thin))
    return Cut(thin, per_block * math.ceil(chunk / per_block), per_block * thin)


def even_part(total: int, most: int) -> int:
    """The size of parts of at most `most`, as few and as even as can be."""
    return math.ceil(total / math.ceil(total / most))


class Plan(NamedTuple):
    """`burn_in` steps, then draws, cut into chunks."""

    num_chains: int
    num_draws: int
    burn_in: int
    cut: Cut

    @property
    def num_chunks(self) -> int:
        return -(-self.num_draws // self.cut.chunk)

    @property
    def chunk_steps(self) -> int:
        return self.cut.chunk * self.cut.thin

    @property
    def num_steps(self) -> int:
        """Of a chain, those of the burn-in among them."""
        return self.burn_in + self.num_draws * self.cut.thin

    def first_step(self, chunk: int) -> int:
        """The number of the first step of a chunk."""
        return self.burn_in + chunk * self.chunk_steps

    def draws_in(self, chunk: int) -> int:
        """How many draws of a chunk are wanted; the last may be cut."""
        return min(self.cut.chunk, self.num_draws - chunk * self.cut.chunk)
