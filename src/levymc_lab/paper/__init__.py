"""The paper's figures and tables, a module each, in the order of `framework.names`."""

from ._published import published as published
