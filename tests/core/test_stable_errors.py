"""Arguments that make no sense are refused where they are given, with advice.

Every message names the argument, shows the value, and says what to do instead.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from levymc import stable

KEY = jax.random.key(0)
LAW = {name: getattr(stable, name) for name in ("logpdf", "pdf", "cdf", "sf", "score", "ppf")}
TIMES = jnp.array([0.0, 1.0, 2.0])
# A remedy is an imperative, or the range to stay in.
REMEDY = re.compile(
    r"\b(use|pass|choose|give|make|take|replace|set|try|sort|divide|drop|remove|clip|mask|map|start"
    r"|build|create|write|wrap|check|convert|rescale|keep|between)\b|must lie in [(\[]",
    re.IGNORECASE,
)


def assert_refused(call, argument, value):
    """The call raises a plain ValueError or TypeError with name, value and remedy."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    message = str(caught.value)
    # A subclass would be someone else's check, with someone else's message.
    assert caught.type in (ValueError, TypeError), f"{caught.type}: {message}"
    assert re.search(rf"\b{argument}\b", message), message
    assert value in message, message
    assert REMEDY.search(message), message


SAMPLERS = {
    "sample": lambda key, alpha, scale=1.0: stable.sample(key, alpha, (3,), scale=scale),
    "sample_isotropic": lambda key, alpha, scale=1.0: stable.sample_isotropic(
        key, alpha, (3, 2), scale=scale
    ),
    "levy_motion": lambda key, alpha: stable.levy_motion(key, alpha, TIMES),
}
SCALED_SAMPLERS = ("sample", "sample_isotropic")
BAD_SCALES = [(0.0, "0"), (-1.5, "-1.5"), (np.nan, "nan"), (np.inf, "inf")]


@pytest.mark.parametrize(
    ("alpha", "text"), [(0.0, "0"), (-0.5, "-0.5"), (2.5, "2.5"), (np.nan, "nan"), (np.inf, "inf")]
)
@pytest.mark.parametrize("name", list(SAMPLERS))
def test_sampler_refuses_alpha(name, alpha, text):
    assert_refused(lambda: SAMPLERS[name](KEY, alpha), "alpha", text)
    assert_refused(lambda: SAMPLERS[name](KEY, np.asarray(alpha)), "alpha", text)
    assert_refused(lambda: SAMPLERS[name](KEY, jnp.asarray(alpha)), "alpha", text)


@pytest.mark.parametrize(
    ("alpha", "text"), [(0.25, "0.25"), (2.5, "2.5"), (-1.0, "-1"), (np.nan, "nan")]
)
@pytest.mark.parametrize("name", list(LAW))
def test_law_refuses_alpha(name, alpha, text):
    assert_refused(lambda: LAW[name](0.75, alpha), "alpha", text)
    assert_refused(lambda: LAW[name](0.75, jnp.array([1.5, alpha])), "alpha", text)


@pytest.mark.parametrize("name", list(LAW))
def test_known_alpha_is_refused_under_jit(name):
    """The other arguments are traced, alpha is not: the error comes when the function is built."""
    assert_refused(lambda: jax.jit(lambda x: LAW[name](x, 0.25))(0.75), "alpha", "0.25")
    assert_refused(lambda: jax.jit(lambda key: stable.sample(key, 2.5))(KEY), "alpha", "2.5")


@pytest.mark.parametrize(("x", "text"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
@pytest.mark.parametrize("name", [name for name in LAW if name != "ppf"])
def test_law_refuses_x(name, x, text):
    assert_refused(lambda: LAW[name](x, 1.5), "x", text)
    assert_refused(lambda: LAW[name](jnp.array([0.0, x]), 1.5), "x", text)


@pytest.mark.parametrize(("scale", "text"), BAD_SCALES)
@pytest.mark.parametrize("name", list(LAW))
def test_law_refuses_scale(name, scale, text):
    assert_refused(lambda: LAW[name](0.75, 1.5, scale), "scale", text)
    assert_refused(lambda: LAW[name](0.75, 1.5, jnp.array([1.0, scale])), "scale", text)


@pytest.mark.parametrize(("scale", "text"), BAD_SCALES)
@pytest.mark.parametrize("name", SCALED_SAMPLERS)
def test_sampler_refuses_scale(name, scale, text):
    assert_refused(lambda: SAMPLERS[name](KEY, 1.5, scale), "scale", text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (42, "42"),
        (None, "None"),
        (np.array([0.5, 1.5]), "float"),
        (jnp.array([0.5, 1.5]), "float"),
        (jnp.zeros(3, jnp.uint32), "(3,)"),
        (jax.random.split(KEY, 3), "(3,)"),
    ],
    ids=["int", "None", "numpy floats", "floats", "three words", "batch of keys"],
)
@pytest.mark.parametrize("name", list(SAMPLERS))
def test_sampler_refuses_key(name, key, text):
    assert_refused(lambda: SAMPLERS[name](key, 1.5), "key", text)


@pytest.mark.parametrize("shape", [(-1,), (2, -3), [-2], -4, (2.5,), "ab"], ids=repr)
def test_sampler_refuses_shape(shape):
    text = str(shape).strip("()[],").split(",")[-1].strip()
    assert_refused(lambda: stable.sample(KEY, 1.5, shape), "shape", text)
    assert_refused(lambda: stable.levy_motion(KEY, 1.5, TIMES, shape), "shape", text)
    assert_refused(lambda: stable.sample_isotropic(KEY, 1.5, shape), "shape", text)


@pytest.mark.parametrize("alpha", [1.5, jnp.asarray(1.5)])
def test_truncated_draws_have_one_bound(alpha):
    """Before, draws of several bounds were one and the same number."""
    with pytest.raises(TypeError, match="`bound` must be one number, got an array of shape"):
        stable.sample_truncated(KEY, alpha, np.ones(2))


def test_isotropic_laws_broadcast():
    assert_refused(lambda: stable.sample_isotropic(KEY, jnp.full(3, 1.5), (2, 3)), "alpha", "(3,)")


def test_isotropic_needs_a_vector_axis():
    assert_refused(lambda: stable.sample_isotropic(KEY, 1.5, ()), "shape", "()")


def test_alpha_must_broadcast_to_the_shape():
    assert_refused(lambda: stable.sample(KEY, jnp.array([1.5, 1.6, 1.7]), (2,)), "alpha", "(3,)")


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([0.0, 2.5, 1.5], "1.5"),
        ([-0.5, 1.0], "-0.5"),
        ([0.0, np.nan], "nan"),
        ([0.0, np.inf], "inf"),
        ([[0.0, 1.0], [2.0, 3.0]], "(2, 2)"),
    ],
    ids=["decreasing", "negative", "nan", "infinite", "matrix"],
)
def test_motion_refuses_times(times, text):
    assert_refused(lambda: stable.levy_motion(KEY, 1.5, jnp.array(times)), "times", text)
    assert_refused(lambda: stable.levy_motion(KEY, 1.5, np.array(times)), "times", text)


def test_traced_arguments_do_not_raise():
    """Values known only at run time cannot be refused when the function is built."""
    value = jax.jit(stable.logpdf)(jnp.array([0.5, jnp.inf]), 1.5)
    assert np.isfinite(value[0])
    assert jax.jit(lambda key, alpha: stable.sample(key, alpha))(KEY, 2.5).shape == ()
