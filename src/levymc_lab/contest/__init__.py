"""A contest of samplers: problems with known truth, peers with equal budgets, honest numbers."""
