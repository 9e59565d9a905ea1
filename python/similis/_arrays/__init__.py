# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy, CuPy and JAX."""
