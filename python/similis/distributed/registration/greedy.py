# SPDX-License-Identifier: Apache-2.0
"""Steps of the greedy stage on slabs, those of src/registration/greedy.cc. Per iteration:

    moved = moving at A(x + u) ─> metrics, whole sums ─> gradient to u + momentum · the last g
      ─> G_fluid = g ─> step / largest = d ─> u' = G_elastic (d + u(x + d)) ─> guard
"""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from .. import fields
from .curvature import Preconditioner
from .folds import guard
from .levels import MOMENTUM, LevelPair, Settings, displaced, drop_last_digits
from .metrics import MovedMetrics, Term

_HALVINGS = 4


class GreedyLevel:
    """field: u in voxels of the level. along: the direction of the next step."""

    along: Tensor

    def __init__(
        self,
        images: LevelPair,
        labels: Optional[LevelPair],
        affine: Tensor,
        terms: list[Term],
        seed: int,
        u: Tensor,
        settings: Settings,
    ) -> None:
        self.field, self._settings, self._grid = u, settings, images.fixed
        of_labels = None if labels is None else (labels.fixed, labels.moving)
        self._metrics = MovedMetrics((images.fixed, images.moving), of_labels, affine, terms, seed)
        self._damped: Optional[Preconditioner] = None
        if settings.damping is not None:
            self._damped = Preconditioner(images.fixed, settings.fluid, settings.damping)
        self._last: Optional[Tensor] = None

    def differentiate(self) -> float:
        """Finds the next direction; returns the loss."""
        value, g = self._metrics.value_and_gradient(self.field)
        if self._last is not None:
            g = g.add_(self._last, alpha=MOMENTUM)
        self._last = g = fields.smooth(
            g, self._settings.fluid, self._grid.slabs, field=True, padding="zeros"
        )
        self.along = g if self._damped is None else self._damped.solve(g)
        return -value

    def advance(self, length: float, largest: float) -> bool:
        """Takes a step of so many voxels along a direction whose longest vector is `largest`; False
        if no step is valid."""
        if self._damped is None:
            self.along = self._last = drop_last_digits(self.along, largest)
        grid, d = self._grid, self.along * (length / largest)
        for halvings in range(_HALVINGS + 1):
            d = d * 0.5 if halvings else d
            composed = d + displaced(self.field, d, grid)
            composed = fields.smooth(composed, self._settings.elastic, grid.slabs, field=True)
            composed = drop_last_digits(composed, 1)
            passed, repaired, _ = guard(composed, grid.slabs, self._settings.min_jacobian)
            if passed:
                self.field = repaired
                return True
        return False
