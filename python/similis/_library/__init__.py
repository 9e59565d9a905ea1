# SPDX-License-Identifier: Apache-2.0
"""The C library as Python sees it: its functions and structs, and options written as text."""
