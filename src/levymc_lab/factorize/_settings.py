"""What a person may choose, and what was chosen for them."""

from typing import NamedTuple

from levymc._checks import check_count, check_interval, check_positive

HELD_OUT = 0.1  # share of the ratings
LEVEL = 0.9  # probability of the intervals
BURN_IN = 0.2  # share of the steps
EVERY = 10  # steps between draws that count
FEWEST_STEPS = 50  # four draws that count
MOST_RANK = 61  # with biases, 63 columns: as many as the bits of a signed word

# Chosen at alpha 1.8 and rank 10 on one split (seed 0) of MovieLens 1M and latest-small: after 4000
# steps of 0.1 the error is 0.003 larger on 1M, and steps of 0.5 end 0.014 above.
STEP_SIZE = 0.25
NUM_BIASES = 2  # columns that biases take
BATCH_SHARE = 0.1
FACTOR_SQUARE = 0.5  # mean square of the entries of a factor, as found there
# A row with one rating in a batch sees it 1/BATCH_SHARE times, with a curvature of its partner's
# squared length, which goes with the number of columns: for each column so many ratings are added
# to the row's count, so that its step stays short.
CAUTION_A_COLUMN = 1.25 / BATCH_SHARE
# Of the stable noise.  Without it the draws' errors are too large (0.854 in place of 0.845 on
# MovieLens 1M), as one jump in a row moves all its partners.
TRUNCATION = 50.0


class Settings(NamedTuple):
    """Of a fit.

    rank: columns of the factors, 1 to 61.
    alpha: of the noise, in (1, 2]; 2 is SGLD.
    steps: of the chain.
    seed: of all random numbers, the choice of held-out ratings among them.
    noise: standard deviation of a rating about its mean, in units of a rating; estimated if None.
    """

    rank: int = 10
    alpha: float = 1.8
    steps: int = 4000
    seed: int = 0
    noise: float | None = None

    @property
    def burn_in(self) -> int:
        """Steps before the first that counts."""
        return int(BURN_IN * self.steps)


DEFAULTS = Settings()


def check_settings(settings: Settings) -> None:
    """Refuse what lies outside its range."""
    check_count("rank", settings.rank, "It is the number of columns of the factors.")
    if settings.rank > MOST_RANK:
        raise ValueError(f"`rank` must be at most {MOST_RANK}, got {settings.rank}.")
    check_interval("alpha", settings.alpha, 1.0, 2.0, includes_low=False, remedy="2 is SGLD.")
    check_count("steps", settings.steps, "It is the length of the chain.")
    if settings.steps < FEWEST_STEPS:
        raise ValueError(
            f"`steps` must be at least {FEWEST_STEPS}, got {settings.steps}. "
            "Some thousands are usual."
        )
    if settings.seed < 0:
        raise ValueError(f"`seed` must not be negative, got {settings.seed}. Give 0, say.")
    if settings.noise is not None:
        check_positive("noise", settings.noise, "Leave it out, and it is estimated.")
