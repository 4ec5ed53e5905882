"""A slice of the malformed files that `make fuzz` makes."""

from tests.lab import malformed


def test_readers_parse_rightly_or_report_line_and_remedy(tmp_path):
    outcome = malformed.fuzz(tmp_path, count=60, seed=1)
    assert sum(outcome.tries.values()) == 60
    assert len(outcome.tries) == len(malformed.KINDS)
    assert outcome.failures == []


def test_the_same_seed_makes_the_same_files():
    assert list(malformed.cases(5, 12)) == list(malformed.cases(5, 12))
    assert list(malformed.cases(5, 12)) != list(malformed.cases(6, 12))
