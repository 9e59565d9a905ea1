# SPDX-License-Identifier: Apache-2.0
"""similis.register() of images in slabs."""

from .stages import Registered, register

__all__ = ["Registered", "register"]
