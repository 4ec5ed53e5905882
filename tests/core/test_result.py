"""What a result says of its draws: means of many of them, and of any precision."""

import jax.numpy as jnp
import numpy as np
import pytest

import levymc
from levymc.run import Result

MANY = 10**6


def result_of(positions, weights):
    """With the draws first in memory, as the engine leaves them."""
    by_draws = np.moveaxis(np.ascontiguousarray(np.moveaxis(positions, 1, 0)), 0, 1)
    return Result(by_draws, weights, None)


def itself(position):
    return position


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_mean_of_many_draws_is_as_exact_as_its_type(dtype):
    """Sums of a million terms in float32 keep one digit, in float16 they overflow."""
    positions = np.full((2, MANY), 100.0, np.float32).astype(jnp.dtype(dtype))
    result = result_of(positions, np.full((2, MANY), 0.1, np.float32).astype(jnp.dtype(dtype)))
    for mean in (result.mean(), result.expectation(itself)):
        assert mean.dtype == jnp.dtype(dtype)
        np.testing.assert_array_equal(mean.astype(float), 100.0)


def test_means_of_unlike_draws_are_exact():
    """Weights and values that differ, against float64."""
    generator = np.random.default_rng(3)
    positions = generator.normal(100.0, 1.0, (2, MANY)).astype(np.float32)
    weights = generator.uniform(0.1, 1.0, (2, MANY)).astype(np.float32)
    exact = np.average(positions.astype(float), axis=1, weights=weights.astype(float))
    found = result_of(positions, weights).mean()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=2e-7)


def test_a_mean_has_the_wider_type_of_draws_and_weights():
    wide, narrow = np.ones((1, 3)), np.ones((1, 3), np.float32)
    assert result_of(wide, narrow).mean().dtype == np.float64
    assert result_of(narrow, wide).mean().dtype == np.float64
    assert result_of(narrow, narrow).expectation(lambda x: x > 0).dtype == np.float32


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_a_mean_of_complex_numbers_is_complex(dtype):
    """As an estimate of a characteristic function is; before, it lost its imaginary part."""
    positions, weights = np.array([[0.0, 1.0, 2.0]]), np.array([[1.0, 2.0, 1.0]]).astype(dtype)
    exact = np.average(np.exp(1j * positions), axis=1, weights=weights.astype(float))
    found = result_of(positions, weights).expectation(lambda x: jnp.exp(1j * x))
    assert found.dtype == np.complex128
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    narrow = result_of(positions.astype(np.complex64), weights).mean()
    assert narrow.dtype == (np.complex128 if dtype == "float64" else np.complex64)


def test_leaves_whose_names_are_the_same_are_all_shown():
    """Before, one of the two was left out of the table, and of what is judged or exported."""
    draws = np.random.default_rng(0).normal(size=(2, 100))
    result = Result({"a": {"b": draws}, "a.b": 1 + draws}, np.ones((2, 100)), None)
    assert "['a']['b']" in repr(result)
    assert [cells[0] for cells in result._rows()] == ["['a']['b']", "['a.b']"]


def test_draws_that_jax_would_round_keep_their_digits(monkeypatch):
    """Those in float64 that a process loads which did not allow 64-bit types."""
    monkeypatch.setattr("jax.jit", lambda function: lambda *_: pytest.fail("JAX was asked"))
    positions = np.full((1, 4), 1 + 1e-12)
    np.testing.assert_allclose(result_of(positions, np.ones((1, 4))).mean(), 1 + 1e-12, rtol=1e-15)


def test_sixteen_bits_are_saved(tmp_path):
    """Before, bfloat16 came back as bytes without a type."""
    for dtype in ("bfloat16", "float16"):
        positions = {"x": np.arange(6.0).reshape(2, 3).astype(jnp.dtype(dtype))}
        weights = np.full((2, 3), 0.1).astype(jnp.dtype(dtype))
        result = Result(positions, weights, None, observed={"mean": positions["x"][:, 0]})
        result.save(tmp_path / dtype)
        back = levymc.load(tmp_path / dtype)
        for one, other in (
            (back.positions["x"], positions["x"]),
            (back.weights, weights),
            (back.observed["mean"], positions["x"][:, 0]),
        ):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_a_result_without_draws_is_shown_and_has_no_mean():
    """As `levymc.auto` gives one that was stopped before its first draw."""
    empty = levymc.Result({"x": np.zeros((4, 0, 2))}, np.ones((4, 0)), None)
    assert "0 draws" in empty._repr_html_()
    assert empty.__rich__().row_count == 0
    for ask in (empty.mean, empty.to_arviz, lambda: empty.expectation(lambda x: x["x"])):
        with pytest.raises(ValueError, match=r"must have draws, got 4 chains × 0 draws"):
            ask()
