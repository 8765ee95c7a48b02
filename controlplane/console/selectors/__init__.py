"""Reads for pages, composed of the rows of several apps; nothing here changes a row.

Each function takes the person and shows what they may see. The number of queries does not depend
on the number of rows.
"""

from controlplane.console.selectors.control import running_operations

__all__ = ["running_operations"]
