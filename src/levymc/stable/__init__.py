r"""The symmetric α-stable law SαS(σ), E exp(iωX) = exp(-|σω|^α), and Lévy motion."""

from ._fit import StableFit as StableFit
from ._fit import StandardErrors as StandardErrors
from ._fit import fit as fit
from ._frozen import SymmetricLaw as SymmetricLaw
from ._frozen import symmetric as symmetric
from ._isotropic import isotropic_logpdf as isotropic_logpdf
from ._law import cdf as cdf
from ._law import logpdf as logpdf
from ._law import pdf as pdf
from ._law import ppf as ppf
from ._law import score as score
from ._law import sf as sf
from ._sample import levy_motion as levy_motion
from ._sample import sample as sample
from ._sample import sample_isotropic as sample_isotropic
from ._sample import sample_truncated as sample_truncated
from ._tabulated import from_words as from_words
from ._tabulated import quantile_table as quantile_table
from ._tempered import sample_tempered as sample_tempered
