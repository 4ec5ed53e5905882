r"""The paper's hypotheses as questions to a schedule, a drift or a target, and what it bounds.

| Hypothesis | Asks | Function |
|---|---|---|
| H1 | η_n → 0, Σ η_n = ∞ | `check_schedule` |
| Lipschitz | Theorem 1 (one invariant law), Corollary 1 | `check_lipschitz` |
| H2 | a Lyapunov function V of the drift | `check_lyapunov` |
| H3 | f = -φ ∂U thrice differentiable, integrable | `check_smoothness` |
| H4 | tails of f below C e^{-abs(x)} | `check_tail` |
| H5 | geometric ergodicity; A1 and A2 suffice | `check_ergodicity` |
| A1 | x b(x) ≤ -a x² + c | `check_growth` |
| A2 | the sums of centred differences converge | `check_differences` |

All but H1 are about a target or a drift of one number.  Each gives an `Answer`: `holds` where it
is proved or refuted, `looks` where finitely many numbers suggest it.  `leading_term_bound` is
Corollary 2, `kappa_hat` the number of Table 1.

References: [simsekli2017], sections 3.1 to 3.3, and the supplement's remark after Theorem 3.
"""

from ._answer import Answer as Answer
from ._drift import check_growth as check_growth
from ._drift import check_lipschitz as check_lipschitz
from ._drift import check_lyapunov as check_lyapunov
from ._ergodicity import check_differences as check_differences
from ._ergodicity import check_ergodicity as check_ergodicity
from ._leading_term import LeadingTermBound as LeadingTermBound
from ._leading_term import kappa_hat as kappa_hat
from ._leading_term import leading_term_bound as leading_term_bound
from ._schedule import check_schedule as check_schedule
from ._target import check_smoothness as check_smoothness
from ._target import check_tail as check_tail
