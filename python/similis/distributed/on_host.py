# SPDX-License-Identifier: Apache-2.0
"""Numbers that a GPU finds and the host needs."""

from __future__ import annotations

import torch
from torch import Tensor


class OnHost:
    """A small tensor on its way to the host, in f64."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor, self._found = tensor.detach().double(), None
        if tensor.is_cuda:
            memory = torch.empty(tensor.shape, dtype=torch.float64, device="cpu", pin_memory=True)
            self._tensor = memory.copy_(self._tensor, non_blocking=True)
            self._found = torch.cuda.Event()
            self._found.record()

    def there(self) -> Tensor:
        """Waits for it, and for nothing that the GPU was given later."""
        if self._found is not None:
            self._found.synchronize()
        return self._tensor
