# SPDX-License-Identifier: Apache-2.0
# Written by scripts/python_stubs.py.
