r"""The Riesz derivative D^γ f = F^{-1}{|ω|^γ F f}, three ways: differences, Fourier, quadrature."""

from ._centered_difference import centered_difference as centered_difference
from ._centered_difference import coefficients as coefficients
from ._centered_difference import leading_coefficient as leading_coefficient
from ._centered_difference import unchecked_coefficients as unchecked_coefficients
from ._fourier import fourier_derivative as fourier_derivative
from ._gauss_jacobi import gauss_jacobi as gauss_jacobi
from ._gauss_jacobi import unchecked_rule as unchecked_rule
from ._kernel import KernelQuadrature as KernelQuadrature
from ._kernel import KernelRule as KernelRule
from ._kernel import derivative_of_potential as derivative_of_potential
from ._kernel import kernel_constant as kernel_constant
from ._kernel import kernel_quadrature as kernel_quadrature
