"""One page, without need of a network, on all results in a folder.

The page shows what `levymc_lab.framework` left on disk and computes no number of its own; of a run
that is not finished, what its cells give so far, if the experiment shows parts.  ``_entries`` reads
the folder, ``_view`` turns each entry into plain values, and ``_page`` fills them into
``page.html.j2`` under the styles of ``page.css``, where everything that comes from results is
escaped.
"""

from ._page import write_page as write_page
