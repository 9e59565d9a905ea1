# SPDX-License-Identifier: Apache-2.0
"""similis.register() of images in slabs."""

from .registered import Registered
from .stages import register

__all__ = ["Registered", "register"]
