"""One page, without need of a network, on all results in a folder.

The page shows what `levymc_lab.framework` left on disk and computes no number of its own; of a
run that is not finished, what its cells say so far, if the experiment shows parts.  It goes
together in this order: ``_entries`` reads the folder, ``_header`` and ``_section`` turn that into
elements of ``_html``, ``_page`` puts them under the styles of ``*.css`` and writes it all.
"""

from ._page import write_page as write_page
