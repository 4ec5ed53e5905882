r"""NumPyro's models sampled by `levymc.auto`, and levymc's algorithms and law in NumPyro.

.. code-block:: python

    fit = levymc.interop.numpyro.sample(model, jax.random.key(0), data)
    arviz.summary(fit.to_arviz())
"""

try:
    import numpyro as _numpyro  # noqa: F401
except ModuleNotFoundError as _error:
    raise ImportError(
        "`levymc.interop.numpyro` needs NumPyro: pip install 'levymc[numpyro]'."
    ) from _error

from ._kernel import Kernel as Kernel
from ._kernel import KernelState as KernelState
from ._model import NumpyroModel as NumpyroModel
from ._model import from_numpyro as from_numpyro
from ._sample import sample as sample
from ._stable import SymmetricStable as SymmetricStable
