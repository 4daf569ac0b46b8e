# SPDX-License-Identifier: Apache-2.0
"""Compilation through NNAPI, cold and from its cache, beside LiteRT."""
