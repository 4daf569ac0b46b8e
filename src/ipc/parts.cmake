# SPDX-License-Identifier: Apache-2.0
# What the transport and the driver host are made of, and clients use too.
hearth_library(hearth_ipc_parts SOURCES fair_share.cc DEPS hearth_base)

hearth_test(ipc_parts_test SOURCES fair_share_test.cc DEPS hearth_ipc_parts)
