"""Pelts of hares and lynxes that the Hudson's Bay Company bought, in thousands, 1900 to 1920.

They follow Lotka and Volterra's equations, here of logarithms, which cannot become negative:

    d log h / dt = a - b l ,    d log l / dt = -c + d h .
"""

import numpy as np

HARES = [30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1]
HARES += [40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]
LYNXES = [4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4]
LYNXES += [8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
PELTS = np.array([HARES, LYNXES]).T

# Logarithms of a, b, c and d, a priori, all with standard deviations of a half.
LOG_RATES = np.log([0.6, 0.03, 0.8, 0.03])
STEPS_A_YEAR = 4


def year_later(logs, slope):
    """The logarithms of both populations a year later, by the method of Runge and Kutta.

    slope: their derivative, a function of them.
    """
    step = 1 / STEPS_A_YEAR
    for _ in range(STEPS_A_YEAR):
        first = slope(logs)
        second = slope(logs + step / 2 * first)
        third = slope(logs + step / 2 * second)
        fourth = slope(logs + step * third)
        logs = logs + step / 6 * (first + 2 * second + 2 * third + fourth)
    return logs
