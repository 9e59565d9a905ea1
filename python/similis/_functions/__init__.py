# SPDX-License-Identifier: Apache-2.0
"""The public functions, and the choice of the package that computes for an array."""
