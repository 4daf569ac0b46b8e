# SPDX-License-Identifier: Apache-2.0
"""Comparison of Hearth with LiteRT; `compare.py` is the command."""
