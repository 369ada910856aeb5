"""A request that is refused."""

from __future__ import annotations


class OpenFlowError(Exception):
    """A refused request: ``type`` and ``code`` of the OFPT_ERROR that answers it."""

    def __init__(self, type_: int, code: int, text: str) -> None:
        super().__init__(text)
        self.type, self.code = type_, code
