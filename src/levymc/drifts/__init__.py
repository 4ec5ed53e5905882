r"""Drifts b of dX = b(X) dt + dL^α that make a target invariant, exactly or nearly.

.. math:: [b(x)]_d = D^{α-2}_{x_d} \{φ\, ∂_{x_d} \log φ\}(x) / φ(x)

one partial Riesz derivative a coordinate ([simsekli2017], eq. (13)).  Each maker returns a `Drift`.
"""

from ._centered_difference import centered_difference as centered_difference
from ._drift import Changed as Changed
from ._drift import Drift as Drift
from ._drift import Estimated as Estimated
from ._drift import Evaluation as Evaluation
from ._drift import Evaluations as Evaluations
from ._drift import LogDensity as LogDensity
from ._drift import Scaled as Scaled
from ._drift import SignedLog as SignedLog
from ._drift import Values as Values
from ._drift import as_drift as as_drift
from ._drift import gradient as gradient
from ._drift import gradient_coefficient as gradient_coefficient
from ._drift import gradient_coefficients as gradient_coefficients
from ._drift import leading_term as leading_term
from ._drift import scaled_gradient as scaled_gradient
from ._gaussian import gaussian as gaussian
from ._gaussian_mixture import gaussian_mixture as gaussian_mixture
from ._quadrature import quadrature as quadrature
from ._stable_like import AlphaFunction as AlphaFunction
from ._stable_like import stable_like as stable_like
from ._stable_target import stable_target as stable_target
