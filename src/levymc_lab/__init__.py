"""The laboratory around levymc: data sets, the paper's experiments, ratings, reports, the command.

Installed with ``pip install levymc[lab]``.  The library, `levymc`, needs none of it.
"""
